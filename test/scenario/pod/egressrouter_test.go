package pod

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// egressRouter is a cluster with a pod "client", and with external servers that accept only the
// egress router's address. All egress routers in the guide have this address, so only one of them
// runs at a time.
type egressRouter struct{ *kit.Cluster }

func newEgressRouter(t *testing.T) *egressRouter {
	t.Helper()
	c := kit.Shared(t)
	c.OC("label", "node", "--all", "site=springfield-1", "--overwrite")
	machine := c.Neighbor("192.168.12.1/24", "203.0.113.25/32", "203.0.113.26/32", "203.0.113.27/32")
	// The servers respond with the client's address and with their own address.
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintf(w, "%s to %s as %s\n", client, r.Context().Value(http.LocalAddrContextKey), r.Host)
	})}
	var tasks sync.WaitGroup
	for _, port := range []string{"80", "100", "443", "9999"} {
		listener, err := machine.Listen("tcp4", ":"+port)
		if err != nil {
			t.Fatal(err)
		}
		tasks.Go(func() { _ = server.Serve(listener) })
	}
	t.Cleanup(func() {
		server.Close()
		tasks.Wait()
	})
	c.Apply(task("client"))
	c.WaitPodRunning("client")
	return &egressRouter{c}
}

// connects waits until the client's requests to a URL reach the external server with the given
// address, and come from the egress router's address.
func (r *egressRouter) connects(url, server string) {
	r.WaitFetch("client", url, "192.168.12.99 to "+server)
}

// fetch sends one request from the client. variables contains environment variables for the
// command, such as http_proxy=http://egress-1:8080/.
func (r *egressRouter) fetch(variables, url string) (string, error) {
	return r.TryOC("exec", "client", "--", "sh", "-c", variables+" timeout 10 wget -q -O - "+url)
}

func TestEgressRouterRedirectsAsInTheGuide(t *testing.T) {
	r := newEgressRouter(t)
	r.Apply(guideRouterService)
	for name, manifest := range map[string]string{"init container": guideRouter, "ordinary container": guideLegacyRouter} {
		t.Log(name)
		r.Apply(manifest)
		r.WaitPodRunning("egress-1")
		r.connects("http://egress-1/", "203.0.113.25:80")
		r.connects("http://egress-1:443/", "203.0.113.25:443")
		r.connects("http://"+r.Pod("egress-1").Status.PodIP+":9999/", "203.0.113.25:9999")
		r.OC("delete", "pod", "egress-1")
	}
}

func TestEgressRouterRedirectsToManyDestinations(t *testing.T) {
	r := newEgressRouter(t)
	check := func() {
		t.Helper()
		pod := "http://" + r.WaitPodRunning("egress-multi").Status.PodIP
		r.connects(pod+"/", "203.0.113.25:80")
		r.connects(pod+":8080/", "203.0.113.26:80")
		r.connects(pod+":8443/", "203.0.113.26:443")
		r.connects(pod+":9999/", "203.0.113.27:9999")
	}
	r.Apply(guideMultiRouter)
	check()
	r.OC("delete", "pod", "egress-multi")

	// Then use the same routes in a ConfigMap, which the pod reads when it starts.
	file := filepath.Join(t.TempDir(), "my-egress-destination.txt")
	if err := os.WriteFile(file, []byte(guideDestinationFile), 0o600); err != nil {
		t.Fatal(err)
	}
	r.OC("delete", "configmap", "egress-routes", "--ignore-not-found")
	r.OC("create", "configmap", "egress-routes", "--from-file=destination="+file)
	value := guideMultiRouter[strings.Index(guideMultiRouter, "      value: |"):strings.Index(guideMultiRouter, "    - name: EGRESS_ROUTER_MODE")]
	r.Apply(strings.Replace(guideMultiRouter, value, `      valueFrom:
        configMapKeyRef:
          name: egress-routes
          key: destination
`, 1))
	check()
	r.OC("delete", "pod", "egress-multi")
}

func TestEgressRouterIsHTTPProxy(t *testing.T) {
	r := newEgressRouter(t)
	o := newOutside(t, r.Cluster)
	o.set("www.example.com.", "A 203.0.113.25")
	o.set("www.foobar.com.", "A 203.0.113.26")
	o.set("inside.foobar.com.", "A 192.168.1.7")
	r.Apply(guideHTTPProxy)
	r.WaitPodRunning("egress-http-proxy")
	// The guide's service selects no pods, so change its selector to the pod's label.
	r.Apply(guideHTTPProxyService)
	if addresses := r.OC("get", "endpoints", "egress-1", "-o", "jsonpath={.subsets}", "--ignore-not-found"); addresses != "" {
		t.Errorf("the service of the guide has the endpoints %q", addresses)
	}
	r.Apply(strings.Replace(guideHTTPProxyService, "    name: egress-1", "    name: egress-http-proxy", 1))

	const proxy = "http_proxy=http://egress-1:8080/"
	for url, want := range map[string]string{
		"http://203.0.113.25/":      "192.168.12.99 to 203.0.113.25:80 as 203.0.113.25",
		"http://203.0.113.27:9999/": "192.168.12.99 to 203.0.113.27:9999 as 203.0.113.27:9999",
		"http://www.foobar.com/":    "192.168.12.99 to 203.0.113.26:80 as www.foobar.com",
		"http://www.example.com/":   "403 Forbidden", // the rules deny this domain
		"http://example.com/":       "403 Forbidden",
		"http://192.168.1.7/":       "403 Forbidden", // the rules deny this network
		// This name resolves to an address in the cluster's network, which the proxy must deny.
		"http://inside.foobar.com/": "403 Forbidden",
	} {
		r.WaitFor(url+" through the proxy", func(context.Context) error {
			page, err := r.fetch(proxy, url)
			if got := fmt.Sprint(page, err); !strings.Contains(got, want) {
				return fmt.Errorf("got %q, want %q", got, want)
			}
			return nil
		})
	}
	r.OC("delete", "pod", "egress-http-proxy")

	r.Apply(r.fromConfigMap(t, guideHTTPProxy, "EGRESS_HTTP_PROXY_DESTINATION"))
	r.WaitPodRunning("egress-http-proxy")
	r.WaitFor("proxy with rules of a ConfigMap", func(context.Context) error {
		page, err := r.fetch(proxy, "http://www.foobar.com/")
		if err == nil && !strings.Contains(page, "192.168.12.99 to 203.0.113.26:80") {
			err = fmt.Errorf("the page is %q", page)
		}
		return err
	})
	if page, err := r.fetch(proxy, "http://www.example.com/"); err == nil || !strings.Contains(err.Error(), "403 Forbidden") {
		t.Errorf("a domain that the ConfigMap denies: %q, %v", page, err)
	}
	r.OC("delete", "pod", "egress-http-proxy")
}

// fromConfigMap stores a variable's value in a ConfigMap. It returns the manifest with a reference
// to the ConfigMap instead of the value.
func (r *egressRouter) fromConfigMap(t *testing.T, manifest, variable string) string {
	t.Helper()
	const indent = "        "
	before, after, exists := strings.Cut(manifest, "    - name: "+variable+"\n      value: |\n")
	if !exists {
		t.Fatalf("the manifest has no variable %s", variable)
	}
	r.OC("delete", "configmap", "egress-destinations", "--ignore-not-found")
	r.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: egress-destinations}\ndata:\n  destinations: |\n" + after)
	return before + "    - name: " + variable + "\n      valueFrom:\n" + indent + "configMapKeyRef: {name: egress-destinations, key: destinations}\n"
}

func TestEgressRouterIsDNSProxy(t *testing.T) {
	r := newEgressRouter(t)
	o := newOutside(t, r.Cluster)
	o.set("example.com.", "A 203.0.113.25")
	o.set("foobar.com.", "A 203.0.113.26")
	r.Apply(guideDNSProxy)
	r.Apply(guideDNSProxyService)
	r.WaitPodRunning("egress-dns-proxy")
	r.connects("http://egress-dns-svc/", "203.0.113.25:80")
	r.connects("http://egress-dns-svc:100/", "203.0.113.25:100")
	r.connects("http://egress-dns-svc:8080/", "203.0.113.26:80")
	r.connects("http://egress-dns-svc:8443/", "203.0.113.26:443")
	// The proxy must resolve the name again for each connection.
	o.set("foobar.com.", "A 203.0.113.27")
	r.connects("http://egress-dns-svc:8443/", "203.0.113.27:443")
	if log := r.OC("logs", "egress-dns-proxy"); !strings.Contains(log, "connected client") || !strings.Contains(log, "target=foobar.com:443") {
		t.Errorf("the log is %q", log)
	}
	r.OC("delete", "pod", "egress-dns-proxy")

	quiet := strings.Replace(guideDNSProxy, "    - name: EGRESS_DNS_PROXY_DEBUG\n      value: \"1\"\n", "", 1)
	r.Apply(r.fromConfigMap(t, quiet, "EGRESS_DNS_PROXY_DESTINATION"))
	r.WaitPodRunning("egress-dns-proxy")
	r.connects("http://egress-dns-svc/", "203.0.113.25:80")
	if log := r.OC("logs", "egress-dns-proxy"); log != "" {
		t.Errorf("without EGRESS_DNS_PROXY_DEBUG, the log is %q", log)
	}
	r.OC("delete", "pod", "egress-dns-proxy")
}

func TestEgressRouterFailsOver(t *testing.T) {
	r := newEgressRouter(t)
	r.Apply(strings.ReplaceAll(guideRouterService, "    name: egress-1", "    name: egress-demo"))
	// Allow the pods' service account to run privileged containers.
	r.OC("adm", "policy", "add-scc-to-user", "privileged", "-z", "default")
	r.Apply(guideRouterController)
	r.connects("http://egress-1/", "203.0.113.25:80")
	former := r.OnlyPod("name=egress-demo").Name
	r.OC("delete", "pod", former)
	r.connects("http://egress-1/", "203.0.113.25:80")
	r.WaitFor("replacement pod", func(context.Context) error {
		output, err := r.TryOC("describe", "rc", "egress-demo-controller")
		if err == nil && (!strings.Contains(output, "1 current / 1 desired") || strings.Count(output, "Created pod") < 2) {
			err = fmt.Errorf("oc describe rc prints\n%s", output)
		}
		return err
	})
	r.OC("delete", "rc", "egress-demo-controller")
	r.WaitFor("end of the router", func(context.Context) error {
		pods, err := r.TryOC("get", "pods", "-l", "name=egress-demo", "-o", "name")
		if err == nil && pods != "" {
			err = fmt.Errorf("pods %s", pods)
		}
		return err
	})
}

func TestEgressRouterReportsBadSettings(t *testing.T) {
	r := newEgressRouter(t)
	bad := strings.NewReplacer("192.168.12.99/24", "192.168.12", "value: init", "value: proxy", "spec:\n", "spec:\n  restartPolicy: Never\n")
	r.Apply(bad.Replace(guideRouter))
	r.WaitFor("reason of the failure", func(context.Context) error {
		pod := r.Pod("egress-1")
		if len(pod.Status.InitContainerStatuses) == 0 || pod.Status.InitContainerStatuses[0].State.Terminated == nil {
			return fmt.Errorf("status %v", pod.Status.InitContainerStatuses)
		}
		state := pod.Status.InitContainerStatuses[0].State.Terminated
		for _, want := range []string{`EGRESS_SOURCE is "192.168.12", must be an IP address`, `EGRESS_ROUTER_MODE is "proxy", must be init`} {
			if state.ExitCode != 1 || !strings.Contains(state.Message, want) {
				return fmt.Errorf("exit code %d, message %q, want %q", state.ExitCode, state.Message, want)
			}
		}
		return nil
	})
}

func TestMacvlanDeviceNeedsPrivilegedPod(t *testing.T) {
	c := kit.Shared(t)
	c.OC("adm", "policy", "add-role-to-user", "admin", "tenant", "-n", c.Namespace)
	plain := strings.Replace(guideRouter, "      privileged: true", "      runAsNonRoot: false", 1)
	for name, tt := range map[string]struct {
		manifest, want string
		as             []string
	}{
		"tenant, privileged pod":          {guideRouter, "unable to validate against any security context constraint", []string{"--as=tenant", "--as-group=system:authenticated"}},
		"administrator, unprivileged pod": {plain, "requires a privileged container", nil},
		"invalid name of a device":        {strings.Replace(guideRouter, `"true"`, `"a/b"`, 1), "must be \"true\", \"false\" or the name", nil},
		"limit that is not a number":      {strings.Replace(guideRouter, `pod.network.openshift.io/assign-macvlan: "true"`, `kubernetes.io/egress-bandwidth: fast`, 1), "such as \"10M\"", nil},
	} {
		_, err := c.TryOCWithInput(tt.manifest, append([]string{"create", "-f", "-"}, tt.as...)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	c.Apply(task("plain"))
	if _, err := c.TryOC("annotate", "pod", "plain", "pod.network.openshift.io/assign-macvlan=true"); err == nil || !strings.Contains(err.Error(), "requires a privileged container") {
		t.Errorf("annotation of an existing pod: %v", err)
	}
}
