package router

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/test/kit"
)

// ask sends a request to an address that the machine can reach. It returns the response's status,
// headers and body.
func ask(c *kit.Cluster, address, path string, with func(*http.Request)) (status int, header http.Header, body string) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Dial(ctx, "tcp", address) },
	}}
	request, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return 0, nil, err.Error()
	}
	with(request)
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, err.Error()
	}
	return response.StatusCode, response.Header, string(content)
}

func toHost(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }

// scraper is a service account that is allowed to read the metrics of the router "gold".
const scraper = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules: [{apiGroups: [route.openshift.io], resources: [routers/metrics], resourceNames: [gold], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{kind: ServiceAccount, namespace: %[1]s, name: prometheus}]
`

func TestShardedRouterRunsInPod(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(fmt.Sprintf(site, "shard", "sharded"))
	c.OC("expose", "service/shard", "--name=mine", "--hostname=gold.example.com", "-l", "tier=gold")
	c.OC("annotate", "route", "mine", "haproxy.router.openshift.io/cookie_name=golden")
	c.Apply(fmt.Sprintf(route, "others", "tier: tin", "tin.example.com", "shard"))
	c.OC("adm", "router", "gold", "--ports=81,444", "--stats-port=1937", "--replicas=0", "--extended-logging", "--router-canonical-hostname=gold.example.com")
	t.Cleanup(func() { c.OC("delete", "clusterrolebinding", "router-gold-role") })
	c.OC("set", "env", "dc/gold", "ROUTE_LABELS=tier=gold", "RELOAD_INTERVAL=1s")
	c.OC("rollout", "status", "dc/gold", "--timeout=180s")
	c.OC("scale", "dc/gold", "--replicas=1")

	serves(t, c, 81, "gold.example.com", "sharded")
	serves(t, c, 80, "tin.example.com", "sharded")
	eventually.True(t, "status by both routers", func() bool {
		output := decision(c, "mine")
		return strings.Contains(output, "gold:True") && strings.Contains(output, "public:True")
	})
	if _, header, _ := ask(c, "127.0.0.1:81", "/", toHost("gold.example.com")); !strings.HasPrefix(header.Get("Set-Cookie"), "golden=") {
		t.Errorf("the route's annotation has no effect: the cookie is %q", header.Get("Set-Cookie"))
	}
	if status, _ := fetch(c, 81, "tin.example.com"); status != http.StatusServiceUnavailable {
		t.Errorf("the router of a shard responds with %d for a route outside it", status)
	}
	eventually.Equal(t, "status of a route outside the shard", func() string { return decision(c, "others") }, "public:True")
	eventually.True(t, "requests in its log", func() bool {
		// Retry, because the log container might become ready later than the router.
		fetch(c, 81, "gold.example.com")
		log, err := c.TryOC("logs", "dc/gold", "-c", "syslog")
		return err == nil && strings.Contains(log, "be_http:"+c.Namespace+":mine")
	})
	if output := c.OC("adm", "router", "gold"); output != "Router \"gold\" service exists\n" {
		t.Errorf("output of the second command: %q", output)
	}

	c.OC("create", "serviceaccount", "prometheus")
	token := strings.TrimSpace(c.OC("create", "token", "prometheus"))
	metrics := func() (int, string) {
		status, _, body := ask(c, "127.0.0.1:1937", "/metrics", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
		return status, body
	}
	if status, body := metrics(); status != http.StatusForbidden {
		t.Errorf("without permission the metrics return %d: %s", status, body)
	}
	c.Apply(fmt.Sprintf(scraper, c.Namespace))
	t.Cleanup(func() { c.OC("delete", "clusterrole,clusterrolebinding", c.Namespace) })
	eventually.True(t, "metrics for users with permission", func() bool {
		status, body := metrics()
		return status == http.StatusOK && strings.Contains(body, `route="mine"`)
	})
	password := c.OC("get", "secret", "gold-stats", "-o", "go-template={{.data.password | base64decode}}")
	status, _, csv := ask(c, "127.0.0.1:1937", "/;csv", func(r *http.Request) { r.SetBasicAuth("admin", password) })
	if status != http.StatusOK || !strings.HasPrefix(csv, "# pxname,svname,") || !strings.Contains(csv, "be_http:"+c.Namespace+":mine") {
		t.Errorf("the statistics as CSV return %d: %.300s", status, csv)
	}
}

// customTemplate is a router template in OpenShift's format. It adds a header with the router's
// peers.
const customTemplate = `
apiVersion: v1
kind: ConfigMap
metadata: {name: own}
data:
  haproxy-config.template: |
    {{define "/var/lib/haproxy/conf/haproxy.config"}}
    global
      stats socket /var/lib/haproxy/run/haproxy.sock mode 600 level admin expose-fd listeners
    defaults
      mode http
      timeout connect 5s
      timeout client 30s
      timeout server 30s
    frontend public
      bind :{{env "ROUTER_SERVICE_HTTP_PORT"}}
      http-response set-header X-Peers "are {{range .PeerEndpoints}}{{if eq .Port "80"}}{{.TargetName}} {{end}}{{end}}"
      {{- range $key, $config := .State}}
      use_backend {{$key}} if { hdr(host) {{$config.Host}} }
      {{- end}}
    {{- range $key, $config := .State}}
    backend {{$key}}
      {{- range $unit, $weight := $config.ServiceUnitNames}}{{range endpointsForAlias $config (index $.ServiceUnits $unit)}}
      server {{.ID}} {{.IP}}:{{.Port}}
      {{- end}}{{end}}
    {{- end}}
    {{end}}
`

func TestProjectHasDedicatedRouter(t *testing.T) {
	c := kit.Shared(t)
	c.OC("policy", "add-role-to-user", "admin", "alice")
	c.Apply(fmt.Sprintf(site, "inside", "own"))
	c.Apply(fmt.Sprintf(route, "inside", "", "inside.example.com", "inside"))
	c.Apply(customTemplate)
	if out, err := c.TryOC("--as=alice", "adm", "router", "inner", "--host-network=false", "--host-ports=false"); err == nil || !strings.Contains(out+err.Error(), "--own-project") {
		t.Errorf("a router of the whole cluster is created: %s %v", out, err)
	}
	c.OC("--as=alice", "adm", "router", "inner", "--own-project", "--host-network=false", "--host-ports=false", "--replicas=0")
	c.OC("--as=alice", "set", "volume", "dc/inner", "--add", "--name=own", "--type=configmap", "--configmap-name=own", "--mount-path=/etc/own")
	c.OC("--as=alice", "set", "env", "dc/inner", "TEMPLATE_FILE=/etc/own/haproxy-config.template", "RELOAD_INTERVAL=1s")
	c.OC("rollout", "status", "dc/inner", "--timeout=180s")
	c.OC("--as=alice", "scale", "dc/inner", "--replicas=2")
	address := c.OC("get", "service", "inner", "-o", "jsonpath={.spec.clusterIP}") + ":80"

	var peers []string
	eventually.True(t, "peers of both routers", func() bool {
		status, header, body := ask(c, address, "/", toHost("inside.example.com"))
		peers = strings.Fields(header.Get("X-Peers"))
		return status == http.StatusOK && body == "own" && len(peers) == 3
	})
	eventually.True(t, "status by the router", func() bool { return strings.Contains(decision(c, "inside"), "inner:True") })

	stop := repeat(func() string {
		if status, _, body := ask(c, address, "/", toHost("inside.example.com")); status != http.StatusOK {
			return fmt.Sprint(status, " ", body)
		}
		return ""
	})
	c.OC("delete", "pod", peers[1])
	if failures := stop(); len(failures) > 0 {
		t.Errorf("%d requests failed while a router was deleted, the first with: %s", len(failures), failures[0])
	}
}

func TestVirtualIPReachesRouter(t *testing.T) {
	c := kit.Shared(t)
	const address = "198.51.100.77:80"
	c.Apply(fmt.Sprintf(site, "vip", "shared"))
	c.OC("expose", "service/vip", "--hostname=vip.example.com")
	serves(t, c, 80, "vip.example.com", "shared")
	c.OC("adm", "ipfailover", "ha", "--virtual-ips=198.51.100.77", "--watch-port=80")
	eventually.Equal(t, "response at the shared address", func() string {
		_, _, body := ask(c, address, "/", toHost("vip.example.com"))
		return body
	}, "shared")
	if output := c.OC("adm", "ipfailover", "ha", "--virtual-ips=198.51.100.77"); output != "Deployment configuration \"ha\" exists\n" {
		t.Errorf("output of the second command: %q", output)
	}
	c.OC("scale", "dc/ha", "--replicas=0")
	eventually.True(t, "release of the address", func() bool {
		_, _, body := ask(c, address, "/", toHost("vip.example.com"))
		return body != "shared"
	})
}
