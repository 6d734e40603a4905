package kubernetes

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/slipway-platform/slipway/test/kit"
)

// server returns a container that serves its pod's name.
func server(fields ...string) string {
	return container("mkdir /tmp/www && hostname >/tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www",
		append(fields, "readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}")...)
}

// service returns a manifest for a service that selects the pods with the label app=web. fields
// contains additional fields for the service's spec.
func service(name string, fields ...string) string {
	return fmt.Sprintf("\n---\n{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {ports: [{port: 80, targetPort: 8080}], %s}}\n", name, strings.Join(fields, ", "))
}

func TestServiceBalancesOverItsPods(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(strings.Replace(replicaController("web", 2), sleeper(), server(), 1) + service("web", "selector: {app: web}", "sessionAffinity: None") +
		service("sticky", "selector: {app: web}", "sessionAffinity: ClientIP"))
	pods := waitPods(c, "app=web", 2)
	c.Apply(pod("client", sleeper()))
	c.WaitPodRunning("client")
	address := c.OC("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	if !strings.HasPrefix(address, "172.30.") {
		t.Errorf("address %q", address)
	}
	for _, name := range pods {
		c.WaitFetch("client", "http://web/", name)
	}
	var first string
	c.WaitFor("sticky service", func(context.Context) (err error) {
		first, err = c.TryOC("exec", "client", "--", "timeout", "5", "wget", "-q", "-O", "-", "http://sticky/")
		return err
	})
	for range 5 {
		if page := c.Exec("client", "wget", "-q", "-O", "-", "http://sticky/"); page != first {
			t.Errorf("with affinity: %q after %q", page, first)
		}
	}
	// Environment variables must describe the services that existed before the pod.
	if env := c.Exec("client", "env"); !strings.Contains(env, "WEB_SERVICE_HOST="+address+"\n") || !strings.Contains(env, "WEB_SERVICE_PORT=80\n") {
		t.Errorf("environment:\n%s", env)
	}
	if endpoints := c.OC("get", "endpoints", "web", "-o", "jsonpath={.subsets[*].addresses[*].targetRef.name}"); len(strings.Fields(endpoints)) != 2 {
		t.Errorf("endpoints of pods %q, want two", endpoints)
	}
	// The service must keep its address and select the new pods.
	c.OC("delete", "pods", "-l", "app=web", "--wait=false")
	for _, name := range waitPods(c, "app=web", 2) {
		c.WaitFetch("client", "http://"+address+"/", name)
	}
	expectRejected(t, c, service(strings.Repeat("x", 64), "selector: {app: web}"), "must be no more than 63 characters")
}

func TestNodePortsAreInRange(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(service("chosen", "type: NodePort", "selector: {app: web}"))
	port, err := strconv.Atoi(c.OC("get", "service", "chosen", "-o", "jsonpath={.spec.ports[0].nodePort}"))
	if err != nil || port < 30000 || port > 32767 {
		t.Errorf("port %d, %v", port, err)
	}
	name := "{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {type: NodePort, ports: [{port: 80, nodePort: %d}]}}"
	expectRejected(t, c, fmt.Sprintf(name, "outside", 8080), "The range of valid ports is 30000-32767")
	expectRejected(t, c, fmt.Sprintf(name, "taken", port), "provided port is already allocated")
	// Project members must be able to create these services unless an administrator's quota
	// prevents it.
	c.Apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: ports}, spec: {hard: {services.nodeports: 1, services.loadbalancers: 0}}}")
	waitUsed(c, "ports", "services.nodeports=1", "services.loadbalancers=0")
	expectRejected(t, c, service("further", "type: NodePort"), "exceeded quota: ports, requested: services.nodeports=1")
	expectRejected(t, c, service("balanced", "type: LoadBalancer", "allocateLoadBalancerNodePorts: false"), "exceeded quota: ports, requested: services.loadbalancers=1")
}

func TestExternalAddressReachesService(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(pod("web", server()) + service("web", "selector: {app: web}", "externalIPs: [198.18.255.7]") + "---" + pod("client", sleeper()))
	c.WaitPodRunning("web")
	c.WaitPodRunning("client")
	c.WaitFetch("client", "http://198.18.255.7/", "web")
	// The service must have this address in addition to its cluster IP.
	c.WaitFetch("client", "http://web."+c.Namespace+"/", "web")

	c.Apply(service("balanced", "type: LoadBalancer", "selector: {app: web}"))
	var address string
	c.WaitFor("address of the service of type LoadBalancer", func(context.Context) (err error) {
		address, err = c.TryOC("get", "service", "balanced", "-o", "jsonpath={.spec.externalIPs[0]}")
		if value, _ := c.TryOC("get", "service", "balanced", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}"); err == nil && (address == "" || value != address) {
			err = fmt.Errorf("the service has the addresses %q and %q", address, value)
		}
		return err
	})
	if !strings.HasPrefix(address, "172.29.") {
		t.Errorf("address %q", address)
	}
	c.WaitFetch("client", "http://"+address+"/", "web")
	expectRejected(t, c, service("thief", "externalIPs: ["+address+"]"), "is in networkConfig.ingressIPNetworkCIDR")
}

// lookup waits until a pod's DNS query for a name returns a response that contains all of texts and
// none of peers.
func lookup(c *kit.Cluster, name string, texts []string, peers ...string) {
	c.WaitFor("response to "+name, func(context.Context) error {
		resp, err := c.TryOC("exec", "client", "--", "nslookup", name)
		if len(texts) == 0 {
			err = nil // the name might not exist
		}
		for _, text := range texts {
			if err == nil && !strings.Contains(resp, text) {
				err = fmt.Errorf("no %q in:\n%s", text, resp)
			}
		}
		for _, text := range peers {
			if err == nil && strings.Contains(resp, text) {
				err = fmt.Errorf("%q in:\n%s", text, resp)
			}
		}
		return err
	})
}

func TestDNSNamesOfHeadlessServices(t *testing.T) {
	c := kit.Shared(t)
	domain := "." + c.Namespace + ".svc.cluster.local"
	unready := container("sleep infinity", "readinessProbe: {exec: {command: ['false']}}")
	c.Apply(pod("client", sleeper()) + "---" + pod("web", unready) +
		service("hidden", "clusterIP: None", "selector: {app: web}") +
		service("published", "clusterIP: None", "selector: {app: web}", "publishNotReadyAddresses: true") +
		service("manual", "clusterIP: None") + service("outside") +
		"---\n{apiVersion: v1, kind: Endpoints, metadata: {name: manual}, subsets: [{addresses: [{ip: 192.0.2.17}, {ip: 192.0.2.18}], ports: [{port: 80}]}]}\n" +
		service("alias", "type: ExternalName", "externalName: published"+domain) + service("normal", "selector: {app: web}"))
	c.WaitPodRunning("client")
	waitPhase(c, "web", "Running")
	address := "Address: " + c.Pod("web").Status.PodIP + "\n"
	lookup(c, "published"+domain, []string{address})
	lookup(c, "hidden"+domain, nil, address)
	lookup(c, "manual"+domain, []string{"Address: 192.0.2.17\n", "Address: 192.0.2.18\n"})
	lookup(c, "alias"+domain, []string{"canonical name = published" + domain, address})
	lookup(c, "normal"+domain, []string{"Address: " + c.OC("get", "service", "normal", "-o", "jsonpath={.spec.clusterIP}") + "\n"}, address)
	if line := strings.Fields(c.OC("get", "svc", "hidden", "--no-headers")); line[2] != "None" {
		t.Errorf("oc get svc shows %q", line)
	}
	if got := c.OC("get", "svc", "hidden", "-o", "jsonpath={.spec.publishNotReadyAddresses}"); got != "" && got != "false" {
		t.Errorf("publishNotReadyAddresses is %q by default", got)
	}
	if _, err := c.TryOC("get", "endpoints", "outside"); err == nil {
		t.Error("a service without a selector has endpoints")
	}
	resolver := c.Exec("client", "cat", "/etc/resolv.conf")
	expect(t, resolver, "nameserver 169.254.20.10\n", "search "+c.Namespace+".svc.cluster.local svc.cluster.local cluster.local")
	expect(t, c.MustSlipway("logs", "node", "-n", "-1"), "Kubelet is setting 169.254.20.10 as a DNS nameserver for domain")
}

// TestServiceReachesExternalHost uses a web server for TCP and a DNS server for UDP, both outside
// the cluster.
func TestServiceReachesExternalHost(t *testing.T) {
	c := kit.Shared(t)
	pages, err := net.Listen("tcp", net.JoinHostPort(c.Gateway.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	web := http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "from outside") })}
	go web.Serve(pages)
	t.Cleanup(func() { web.Close() })
	packets, err := net.ListenPacket("udp", net.JoinHostPort(c.Gateway.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	names := dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		resp := new(dns.Msg).SetReply(q)
		if record, err := dns.NewRR(q.Question[0].Name + " 60 IN A 192.0.2.99"); err == nil && q.Question[0].Qtype == dns.TypeA {
			resp.Answer = append(resp.Answer, record)
		}
		_ = w.WriteMsg(resp)
	})}
	go names.ActivateAndServe()
	t.Cleanup(func() { _ = names.Shutdown() })

	const manifest = `
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {ports: [{name: web, port: 80}, {name: dns, port: 53, protocol: UDP}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: outside}
subsets:
- {addresses: [{ip: %s}], ports: [{name: web, port: %d}, {name: dns, port: %d, protocol: UDP}]}
---
`
	c.Apply(fmt.Sprintf(manifest, c.Gateway, pages.Addr().(*net.TCPAddr).Port, packets.LocalAddr().(*net.UDPAddr).Port) + pod("client", sleeper()))
	c.WaitPodRunning("client")
	c.WaitFetch("client", "http://outside/", "from outside")
	address := c.OC("get", "service", "outside", "-o", "jsonpath={.spec.clusterIP}")
	c.WaitFor("response of the DNS server", func(context.Context) error { return ask(c, address) })

	// A DNS query to an idled service must unidle it. The service must respond when it has
	// endpoints.
	c.Apply(`{apiVersion: v1, kind: Service, metadata: {name: asleep, annotations: {idling.alpha.openshift.io/idled-at: "2026-01-01T00:00:00Z",
		idling.alpha.openshift.io/unidle-targets: "[]"}}, spec: {ports: [{name: dns, port: 53, protocol: UDP}]}}`)
	asleep := c.OC("get", "service", "asleep", "-o", "jsonpath={.spec.clusterIP}")
	response := make(chan error, 1)
	go func() { response <- ask(c, asleep) }()
	c.WaitFor("the service to be unidled", func(context.Context) error {
		since, err := c.TryOC("get", "service", "asleep", "-o", `jsonpath={.metadata.annotations.idling\.alpha\.openshift\.io/idled-at}`)
		if err == nil && since != "" {
			err = fmt.Errorf("the service has been idle since %s", since)
		}
		return err
	})
	c.Apply(fmt.Sprintf("{apiVersion: v1, kind: Endpoints, metadata: {name: asleep}, subsets: [{addresses: [{ip: %s}], ports: [{name: dns, port: %d, protocol: UDP}]}]}",
		c.Gateway, packets.LocalAddr().(*net.UDPAddr).Port))
	if err := <-response; err != nil { // a later query must receive a response
		c.WaitFor("response of the unidled service", func(context.Context) error { return ask(c, asleep) })
	}
}

// ask sends a query to the DNS server in TestServiceReachesExternalHost, at the given address.
func ask(c *kit.Cluster, address string) error {
	resp, err := c.TryOC("exec", "client", "--", "nslookup", "anything.example.com", address)
	if err == nil && !strings.Contains(resp, "192.0.2.99") {
		err = fmt.Errorf("response %q", resp)
	}
	return err
}

func TestKubernetesServicePointsToMaster(t *testing.T) {
	c := kit.Shared(t)
	description := c.OC("describe", "svc", "kubernetes", "-n", "default")
	expect(t, description, "component=apiserver", "provider=kubernetes", "Selector:                 <none>", "172.30.0.1",
		"https  443/TCP", c.Address.String()+":8443", "dns  53/UDP", "dns-tcp  53/TCP", c.Address.String()+":8053", "Session Affinity:         ClientIP")
	c.Apply(pod("resolver", sleeper()))
	c.WaitPodRunning("resolver")
	c.WaitFor("response of the DNS server of the master", func(context.Context) error {
		resp, err := c.TryOC("exec", "resolver", "--", "nslookup", "kubernetes.default.svc.cluster.local", "172.30.0.1")
		if err == nil && strings.Count(resp, "172.30.0.1") < 3 {
			err = fmt.Errorf("the response is %q", resp)
		}
		return err
	})
}
