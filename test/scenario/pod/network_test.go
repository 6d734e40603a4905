package pod

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

// fetch requests a page from inside the machine's network namespace, as a user on the machine does.
func fetch(t *testing.T, c *kit.Cluster, address string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: c.Dial, DisableKeepAlives: true}, Timeout: 5 * time.Second}
	var page []byte
	c.WaitFor("page of "+address, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		page, err = io.ReadAll(response.Body)
		return err
	})
	return string(page)
}

const webService = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`

func TestServiceIsReachableByEveryName(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(server("web"))
	c.Apply(task("client"))
	c.Apply(webService)
	c.WaitPodRunning("web")
	c.WaitPodRunning("client")
	for _, name := range []string{
		"web",
		"web." + c.Namespace,
		"web." + c.Namespace + ".svc",
		"web." + c.Namespace + ".svc.cluster.local",
	} {
		c.WaitFetch("client", "http://"+name+"/", "I am web")
	}
	// This name is OpenShift's DNS name for a service's pods, which bypasses the service's address
	// and port.
	c.WaitFetch("client", "http://web."+c.Namespace+".endpoints.cluster.local:8080/", "I am web")
}

func TestServiceIsReachableFromHost(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(server("web"))
	c.Apply(webService)
	c.WaitPodRunning("web")
	address := c.OC("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	if page := fetch(t, c, address+":80"); page != "I am web\n" {
		t.Errorf("page %q", page)
	}
}

func TestServiceIsReachableOnNodePort(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(server("web"))
	c.Apply(strings.Replace(webService, "spec:\n", "spec:\n  type: NodePort\n", 1))
	c.WaitPodRunning("web")
	port := c.OC("get", "service", "web", "-o", "jsonpath={.spec.ports[0].nodePort}")
	if page := fetch(t, c, net.JoinHostPort(c.Address.String(), port)); page != "I am web\n" {
		t.Errorf("page %q", page)
	}
}

func TestHeadlessServiceHasRecordForEachPod(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: members}
spec:
  clusterIP: None
  selector: {app: members}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: member}
spec:
  serviceName: members
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: members}}
  template:
    metadata: {labels: {app: members}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: member, image: %s, command: [sleep, infinity]}]
`, kit.ToolsImage))
	first, second := c.WaitPodRunning("member-0"), c.WaitPodRunning("member-1")
	for name, want := range map[string][]string{
		"members":          {first.Status.PodIP, second.Status.PodIP},
		"member-0.members": {first.Status.PodIP},
		"member-1.members": {second.Status.PodIP},
	} {
		full := name + "." + c.Namespace + ".svc.cluster.local"
		c.WaitFor("addresses of "+full, func(context.Context) error {
			resp, err := c.TryOC("exec", "member-0", "--", "nslookup", full)
			for _, address := range want {
				if err == nil && !strings.Contains(resp, "Address: "+address+"\n") {
					err = fmt.Errorf("%s is missing in:\n%s", address, resp)
				}
			}
			return err
		})
	}
}

func TestHostPortReachesPod(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(server("web") + "    ports: [{containerPort: 8080, hostPort: 18080}]\n")
	c.WaitPodRunning("web")
	if page := fetch(t, c, net.JoinHostPort(c.Address.String(), "18080")); page != "I am web\n" {
		t.Errorf("page %q", page)
	}
}

func TestPodReachesItselfThroughService(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(server("web"))
	c.Apply(webService)
	c.WaitPodRunning("web")
	// The short name resolves to the pod itself, because it is the pod's name in /etc/hosts.
	c.WaitFetch("web", "http://web."+c.Namespace+"/", "I am web")
}

func TestOutboundTrafficHasAddressOfNode(t *testing.T) {
	c := kit.Shared(t)
	outside := http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "caller", r.RemoteAddr)
	})}
	listener, err := net.Listen("tcp", net.JoinHostPort(c.Gateway.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	go outside.Serve(listener)
	t.Cleanup(func() { outside.Close() })
	c.Apply(task("task"))
	c.WaitPodRunning("task")
	c.WaitFetch("task", "http://"+listener.Addr().String()+"/", "caller "+c.Address.String()+":")
}
