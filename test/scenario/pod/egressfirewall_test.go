package pod

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

// guidePolicy is the policy in OpenShift 3.11 Cluster Administration, Using an Egress Firewall to
// Limit Access to External Resources.
const guidePolicy = `{
    "kind": "EgressNetworkPolicy",
    "apiVersion": "v1",
    "metadata": {
        "name": "default"
    },
    "spec": {
        "egress": [
            {
                "type": "Allow",
                "to": {
                    "cidrSelector": "1.2.3.0/24"
                }
            },
            {
                "type": "Allow",
                "to": {
                    "dnsName": "www.foo.com"
                }
            },
            {
                "type": "Deny",
                "to": {
                    "cidrSelector": "0.0.0.0/0"
                }
            }
        ]
    }
}
`

// firewall returns an EgressNetworkPolicy with rules such as "Allow 1.2.3.0/24" and "Deny
// www.foo.com".
func firewall(name string, rules ...string) string {
	policy := fmt.Sprintf("kind: EgressNetworkPolicy\napiVersion: network.openshift.io/v1\nmetadata: {name: %s}\nspec:\n  egress:\n", name)
	for _, rule := range rules {
		kind, to, _ := strings.Cut(rule, " ")
		field := "dnsName"
		if strings.Contains(to, "/") {
			field = "cidrSelector"
		}
		policy += fmt.Sprintf("  - {type: %s, to: {%s: %q}}\n", kind, field, to)
	}
	return policy
}

// request sends one request from the pod "client" to port 8080 of a host.
func request(c *kit.Cluster, host string) (page string, err error) {
	return c.TryOC("exec", "client", "--", "timeout", "5", "wget", "-q", "-O", "-", "http://"+host+":8080/")
}

// waitExternal waits until a request from the pod "client" to an external address succeeds.
func waitExternal(c *kit.Cluster, host, address string) {
	c.WaitFetch("client", "http://"+host+":8080/", "I am "+address)
}

func waitNoExternal(c *kit.Cluster, hosts ...string) {
	for _, host := range hosts {
		c.WaitBlocked("client", "http://"+host+":8080/")
	}
}

// reachesAPI reports whether the pod "client" can connect to the API server at an address. The API
// server's status for requests without TLS shows that the connection succeeded.
func reachesAPI(c *kit.Cluster, address string) bool {
	_, err := c.TryOC("exec", "client", "--", "timeout", "5", "wget", "-q", "-O", "-", "http://"+address+"/")
	return err != nil && strings.Contains(err.Error(), "400 Bad Request")
}

func TestFirewallOfTheGuideRestrictsExternalTraffic(t *testing.T) {
	p := newProjects(t)
	o := newOutside(t, p.Cluster)
	o.set("www.foo.com.", "A 10.11.12.13")
	waitExternal(p.Cluster, "203.0.113.1", "203.0.113.1")
	gateway := strings.TrimSpace(p.Exec("client", "sh", "-c", "ip route | awk '/default/ {print $3}'"))
	api := map[string]bool{p.Address.String() + ":8443": false, gateway + ":8443": false, "172.30.0.1:443": true}
	for address := range api {
		if !reachesAPI(p.Cluster, address) {
			t.Errorf("without a firewall, no connection to %s", address)
		}
	}

	if output, err := p.TryOCWithInput(guidePolicy, "create", "-f", "-"); err != nil || strings.Contains(output, "Warning") {
		t.Fatalf("oc create: %v\n%s", err, output)
	}
	waitNoExternal(p.Cluster, "203.0.113.1")
	waitExternal(p.Cluster, "1.2.3.4", "1.2.3.4")
	waitExternal(p.Cluster, "www.foo.com", "10.11.12.13")
	waitExternal(p.other, "203.0.113.1", "203.0.113.1") // the other project has no policy
	p.WaitFetch("client", p.url(8080), "I am web")      // the policy must not apply between pods
	if output := p.OC("describe", "egressnetworkpolicy", "default"); !strings.Contains(output, "Allow to 1.2.3.0/24") || !strings.Contains(output, "Deny to 0.0.0.0/0") {
		t.Errorf("oc describe prints\n%s", output)
	}

	// The policy must also apply to connections to the node's own addresses, but not to services
	// and DNS.
	for address, want := range api {
		if got := reachesAPI(p.Cluster, address); got != want {
			t.Errorf("connection to %s: %t, want %t", address, got, want)
		}
	}

	o.set("www.foo.com.", "A 20.21.22.23")
	waitExternal(p.Cluster, "www.foo.com", "20.21.22.23")
	// The previous address must remain reachable, because open connections might use it.
	if page, err := request(p.Cluster, "10.11.12.13"); err != nil {
		t.Errorf("the previous address: %q, %v", page, err)
	}

	// Reverse the guide's rules, so that the first rule denies all addresses.
	p.Apply(firewall("default", "Deny 0.0.0.0/0", "Allow www.foo.com", "Allow 1.2.3.0/24"))
	waitNoExternal(p.Cluster, "1.2.3.4", "www.foo.com")
	p.OC("delete", "egressnetworkpolicy", "default")
	waitExternal(p.Cluster, "203.0.113.1", "203.0.113.1")
}

func TestRoutesBypassFirewall(t *testing.T) {
	c := kit.Shared(t)
	newOutside(t, c)
	c.Apply(task("client"))
	c.WaitPodRunning("client")
	host := "external." + c.Namespace + ".example.com"
	c.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: external}
spec: {ports: [{port: 8080}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: external}
subsets: [{addresses: [{ip: 203.0.113.1}], ports: [{port: 8080}]}]
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: external}
spec: {host: %s, to: {kind: Service, name: external}}
`, host))
	waitExternal(c, "external", "203.0.113.1")
	c.Apply(firewall("default", "Deny 0.0.0.0/0"))
	waitNoExternal(c, "external") // the address of the service's endpoint determines the result
	c.WaitFor("page at the route", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Address.String()+"/", nil)
		if err != nil {
			return err
		}
		request.Host = host
		client := http.Client{Transport: &http.Transport{DialContext: c.Dial, DisableKeepAlives: true}, Timeout: 5 * time.Second}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		page, err := io.ReadAll(response.Body)
		if err == nil && string(page) != "I am 203.0.113.1\n" {
			err = fmt.Errorf("the page is %q", page)
		}
		return err
	})
}

func TestAllowedNameIsReachableFromFirstPacket(t *testing.T) {
	c := kit.Shared(t)
	o := newOutside(t, c)
	c.Apply(task("client"))
	c.WaitPodRunning("client")
	c.Apply(firewall("default", "Allow *.foo.com", "Allow 1.2.3.0/24", "Deny 0.0.0.0/0"))
	waitNoExternal(c, "203.0.113.1")
	for i := 1; i <= 5; i++ {
		name := fmt.Sprintf("new%d.foo.com", i)
		address := fmt.Sprintf("203.0.113.%d", i)
		o.set(name+".", "A "+address)
		if page, err := request(c, name); err != nil || page != "I am "+address+"\n" {
			t.Errorf("the first request to %s: %q, %v", name, page, err)
		}
	}
	o.set("www.foo.com.evil.org.", "A 203.0.113.9")
	o.set("foo.com.", "A 203.0.113.9")
	o.set("alias.evil.org.", "CNAME new1.foo.com.;new1.foo.com. A 203.0.113.9")
	for _, name := range []string{"www.foo.com.evil.org", "foo.com", "alias.evil.org"} {
		if page, err := request(c, name); err == nil {
			t.Errorf("request to %s: %q", name, page)
		}
	}
	// A response from another DNS server must not open the firewall.
	if output := c.Exec("client", "nslookup", "new1.foo.com", wrongDNS); !strings.Contains(output, "203.0.113.9") {
		t.Errorf("the other DNS server responds\n%s", output)
	}
	if page, err := request(c, "203.0.113.9"); err == nil {
		t.Errorf("address of the other DNS server: %q", page)
	}
}

func TestProjectWithTwoFirewallsHasNoExternalTraffic(t *testing.T) {
	c := kit.Shared(t)
	newOutside(t, c)
	c.Apply(task("client"))
	c.WaitPodRunning("client")
	c.Apply(firewall("one", "Allow 0.0.0.0/0"))
	waitExternal(c, "1.2.3.4", "1.2.3.4")
	c.Apply(firewall("two", "Allow 0.0.0.0/0"))
	waitNoExternal(c, "1.2.3.4")
	want := fmt.Sprintf("project %q has 2 EgressNetworkPolicies, so all its external traffic is dropped", c.Namespace)
	for name, command := range map[string]func() string{
		"slipway status": func() string { return c.MustSlipway("status") },
		"oc describe":    func() string { return c.OC("describe", "egressnetworkpolicy", "two") },
	} {
		c.WaitFor("the problem in "+name, func(context.Context) error {
			if output := command(); !strings.Contains(output, want) {
				return fmt.Errorf("it prints\n%s", output)
			}
			return nil
		})
	}
	c.OC("delete", "egressnetworkpolicy", "two")
	waitExternal(c, "1.2.3.4", "1.2.3.4")
	c.WaitFor("a status without the problem", func(context.Context) error {
		if output := c.MustSlipway("status"); strings.Contains(output, want) {
			return fmt.Errorf("it prints\n%s", output)
		}
		return nil
	})

	// A policy in a global project must have no effect.
	admin := c.In("default")
	admin.Apply(firewall("ignored", "Deny 0.0.0.0/0"))
	defer admin.OC("delete", "egressnetworkpolicy", "ignored")
	admin.WaitFor("the event of the project default", func(context.Context) error {
		if output := admin.OC("describe", "egressnetworkpolicy", "ignored"); !strings.Contains(output, "have no effect") {
			return fmt.Errorf("oc describe prints\n%s", output)
		}
		return nil
	})
}

func TestFirewallChangeEndsOpenConnections(t *testing.T) {
	c := kit.Shared(t)
	o := newOutside(t, c)
	c.Apply(strings.Replace(task("client"), "[sleep, infinity]", `[sh, -c, "while :; do echo tick; sleep 0.1; done | nc 1.2.3.4 9000; sleep infinity"]`, 1))
	c.WaitPodRunning("client")
	c.Apply(firewall("default", "Allow 1.2.3.0/24", "Deny 0.0.0.0/0"))
	waitNoExternal(c, "203.0.113.1")
	previous := o.bytes.Load()
	c.WaitFor("traffic of the connection that the firewall allows", func(context.Context) error {
		if count := o.bytes.Load(); count <= previous {
			return fmt.Errorf("the server received %d bytes", count)
		}
		return nil
	})
	c.Apply(firewall("default", "Deny 0.0.0.0/0"))
	waitNoExternal(c, "1.2.3.4")
	const polls = 20 // the client sends 20 requests in this time
	unchanged := 0
	c.WaitFor("end of the connection's traffic", func(context.Context) error {
		count := o.bytes.Load()
		if unchanged++; count != previous {
			previous, unchanged = count, 0
		}
		if unchanged < polls {
			return fmt.Errorf("the server received %d bytes", count)
		}
		return nil
	})
}

func TestFirewallsOutliveNodeProcess(t *testing.T) {
	c := kit.Shared(t)
	o := newOutside(t, c)
	o.set("www.foo.com.", "A 10.11.12.13")
	c.Apply(task("client"))
	c.WaitPodRunning("client")
	c.Apply(guidePolicy)
	waitNoExternal(c, "203.0.113.1")
	waitExternal(c, "www.foo.com", "10.11.12.13")
	o.set("www.foo.com.", "A 20.21.22.23") // the name must keep its previous address
	c.Kill("node")
	if page, err := request(c, "203.0.113.1"); err == nil {
		t.Errorf("while the process starts: %q", page)
	}
	c.Apply(strings.NewReplacer("name: client", "name: late", "[sleep, infinity]",
		`[sh, -c, "wget -T 3 -q -O - http://203.0.113.1:8080/ 2>/dev/null || echo blocked; sleep infinity"]`).Replace(task("client")))
	c.WaitPodRunning("late")
	c.WaitFor("the first request of a new pod", func(context.Context) error {
		log := c.OC("logs", "late")
		if log == "" {
			return fmt.Errorf("its log is empty")
		}
		if log != "blocked\n" {
			t.Errorf("a new pod had a connection before its firewall: %q", log)
		}
		return nil
	})
	waitExternal(c, "10.11.12.13", "10.11.12.13")
	waitExternal(c, "www.foo.com", "20.21.22.23")
	if page, err := request(c, "203.0.113.1"); err == nil {
		t.Errorf("after the restart: %q", page)
	}
}
