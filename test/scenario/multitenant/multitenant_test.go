// Package multitenant tests project isolation with network IDs (the network plugin
// redhat/openshift-ovs-multitenant), and changes to the cluster's network mode. The cluster has
// three hosts, and its pods have IPv4 and IPv6 addresses. Two hosts share a network segment. The
// third host is behind a router, so packets to and from it are encapsulated in VXLAN.
package multitenant

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) {
	kit.MainWith(m, kit.Options{Segment: true, IPv6: true, Master: `networkConfig:
  networkPluginName: ` + networkplugin.Multitenant + `
  clusterNetworks: [{cidr: 10.128.0.0/14, hostSubnetLength: 9}, {cidr: "fd01::/48", hostSubnetLength: 64}]
  serviceNetworkCIDR: 172.30.0.0/16,fd02::/112`})
}

// These are the node names of the additional hosts.
const (
	second  = "second"
	distant = "distant"
)

// pods returns the names of each tenant's pods.
func pods() []string { return []string{"near", "far", "distant"} }

// tenant is a project with three pods: "near" on the master, "far" on the second host, and
// "distant" on the third host. Each pod has a service of the same name that has a node port.
type tenant struct {
	*kit.Cluster
	networks map[string]string // paths of the pods' network namespaces
}

// tenants is the cluster with two projects.
type tenants struct {
	*kit.Cluster
	second    *kit.Host
	distant   *kit.Host
	blue, red tenant
}

// newTenants creates two projects for a test that changes the projects' pods or services.
func newTenants(t *testing.T) tenants {
	t.Helper()
	s := tenantsOf(t, "")
	s.createProject(t, s.red.Namespace)
	s.createPods(t, s.blue, s.red)
	return s
}

// tenantsOf returns tenants whose projects' names derive from the given namespace, or from the
// test's namespace.
func tenantsOf(t *testing.T, namespace string) tenants {
	t.Helper()
	c, host := kit.SharedHost(t)
	if namespace != "" {
		c = c.In(namespace)
	}
	s := tenants{c, host, c.SharedDistantHost(), tenant{c, map[string]string{}}, tenant{c.In(c.Namespace + "-red"), map[string]string{}}}
	for _, node := range []string{second, distant} {
		s.waitReady(node)
	}
	return s
}

// createPods creates the tenants' pods.
func (s tenants) createPods(t *testing.T, tenants ...tenant) {
	t.Helper()
	for _, tenant := range tenants {
		tenant.Apply(tenant.server("near", s.NodeName()) + tenant.server("far", second) + tenant.server("distant", distant))
	}
	s.findPods(t, tenants...)
}

// findPods waits until the tenants' pods are running, and finds their network namespaces.
func (s tenants) findPods(t *testing.T, tenants ...tenant) {
	t.Helper()
	for _, tenant := range tenants {
		for _, pod := range pods() {
			tenant.WaitPodRunning(pod)
			tenant.networks[pod] = tenant.findNetwork(t, pod)
		}
	}
}

// waitReady waits until a node is ready.
func (s tenants) waitReady(name string) {
	s.WaitFor("ready node "+name, func(ctx context.Context) error {
		node, err := s.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the node is not ready")
	})
}

// createProject creates a project that is deleted when the test ends.
func (s tenants) createProject(t *testing.T, name string) {
	t.Helper()
	s.createNetwork(name)
	t.Cleanup(func() { s.OC("delete", "namespace", name, "--wait=false") })
}

// createNetwork creates a project and waits until its network exists.
func (s tenants) createNetwork(name string) {
	// With -count, the previous run's namespace might still be terminating.
	s.WaitFor("project "+name, func(context.Context) error {
		_, err := s.TryOC("create", "namespace", name)
		return err
	})
	s.WaitFor("network of project "+name, func(context.Context) error {
		_, err := s.TryOC("get", "netnamespace", name)
		return err
	})
}

// server returns a pod on a node, and a service for the pod. The pod serves its project's name over
// HTTP on port 8080.
func (t tenant) server(name, node string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %[1]s
  labels: {app: %[1]s}
spec:
  nodeSelector: {kubernetes.io/hostname: %[2]s}
  terminationGracePeriodSeconds: 1
  containers:
  - name: server
    image: %[3]s
    command: [sh, -c, "mkdir /tmp/%[4]s && echo I am %[4]s >/tmp/%[4]s/index.html && exec httpd -f -p 8080 -h /tmp/%[4]s"]
    ports:
    - {name: web, containerPort: 7080}
    - {name: web-udp, containerPort: 7080, protocol: UDP}
    - {name: web-sctp, containerPort: 7080, protocol: SCTP}
    readinessProbe:
      httpGet: {path: /, port: 8080}
      periodSeconds: 1
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  selector: {app: %[1]s}
  ports: [{port: 80, targetPort: 8080}]
---
`, name, node, kit.ToolsImage, t.marker(name))
}

// marker returns a word that occurs only in the command line of the pod's server.
func (t tenant) marker(pod string) string { return t.Namespace + "-" + pod }

// firstProcess matches the /proc status of a container's first process.
var firstProcess = regexp.MustCompile(`(?m)^NSpid:.*\t1$`)

// findNetwork returns the path of a pod's network namespace. It must find the first process,
// because httpd forks a short-lived child process with the same command line for each request.
func (t tenant) findNetwork(test *testing.T, pod string) string {
	test.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		test.Fatal(err)
	}
	for _, process := range processes {
		line, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		if !bytes.HasSuffix(line, []byte("\x00/tmp/"+t.marker(pod)+"\x00")) { // httpd's last argument
			continue
		}
		if status, _ := os.ReadFile(filepath.Join(process, "status")); firstProcess.Match(status) {
			return filepath.Join(process, "ns", "net")
		}
	}
	test.Fatalf("no process of pod %s runs", pod)
	return ""
}

// inPod runs f in a pod's network namespace.
func (t tenant) inPod(pod string, f func() error) error {
	return ns.WithNetNSPath(t.networks[pod], func(ns.NetNS) error { return f() })
}

// netID returns the project's network ID.
func (t tenant) netID() string {
	return strings.TrimSpace(t.OC("get", "netnamespace", t.Namespace, "-o", "jsonpath={.netid}"))
}

// addresses returns the addresses at which other pods in the cluster can reach a pod. These are the
// pod's addresses in both IP families, its service's addresses, and its node port on the given
// node. The first address is the pod's IPv4 address.
func (t tenant) addresses(pod, node string) []string {
	service, err := t.Client.CoreV1().Services(t.Namespace).Get(context.Background(), pod, metav1.GetOptions{})
	if err != nil {
		return []string{err.Error()} // invalid address, so requests to it fail
	}
	var list []string
	for _, ip := range t.Pod(pod).Status.PodIPs {
		list = append(list, net.JoinHostPort(ip.IP, "8080"))
	}
	for _, ip := range service.Spec.ClusterIPs {
		list = append(list, net.JoinHostPort(ip, "80"))
	}
	return append(list, fmt.Sprintf("%s:%d", node, service.Spec.Ports[0].NodePort))
}

// request is a request from a pod to one of another pod's addresses.
type request struct {
	from    tenant
	pod     string
	address string
	content string
}

func (r request) String() string {
	return fmt.Sprintf("%s of %s to %s", r.pod, r.from.Namespace, r.address)
}

// requestTimeout is the timeout for a request. Requests between isolated projects always time out,
// because their packets are dropped.
const requestTimeout = 2 * time.Second

// send sends the request and returns an error unless it receives the expected response.
func (r request) send() error {
	return r.from.inPod(r.pod, func() error {
		conn, err := net.DialTimeout("tcp", r.address, requestTimeout)
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(requestTimeout))
		if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
			return err
		}
		page, err := io.ReadAll(conn)
		if err == nil && !strings.Contains(string(page), r.content) {
			err = fmt.Errorf("the response is %q", page)
		}
		return err
	})
}

// requests returns the requests from all pods in one project to all addresses of all pods in
// another project.
func requests(from, to tenant) (all []request) {
	for _, client := range pods() {
		node := from.Pod(client).Status.HostIP
		for _, pod := range pods() {
			for _, address := range to.addresses(pod, node) {
				all = append(all, request{from, client, address, "I am " + to.marker(pod)})
			}
		}
	}
	return all
}

// reach waits until all pods in two projects can reach each other. If want is false, it waits until
// no pod can reach a pod in the other project.
func (s tenants) reach(a, b tenant, want bool) {
	all := requests(a, b)
	if a.Namespace != b.Namespace {
		all = append(all, requests(b, a)...)
	}
	s.WaitFor(fmt.Sprintf("connections between %s and %s: %t", a.Namespace, b.Namespace, want), func(context.Context) error {
		for i, err := range sendAll(all) {
			if err != nil == want {
				return fmt.Errorf("%s: %v", all[i], err)
			}
		}
		return nil
	})
}

// sendAll sends requests at the same time and returns their errors.
func sendAll(all []request) []error {
	errs := make([]error, len(all))
	var group errgroup.Group
	for i, r := range all {
		group.Go(func() error { errs[i] = r.send(); return nil })
	}
	_ = group.Wait() // the functions return no errors
	return errs
}

// podNetwork runs an `oc adm pod-network` command.
func (s tenants) podNetwork(args ...string) { s.OC(append([]string{"adm", "pod-network"}, args...)...) }

func TestNetworkObjectsShowAssignedSubnetsAndIDs(t *testing.T) {
	s := sharedTenants(t)
	network := s.OC("get", "clusternetwork", "default")
	if !strings.Contains(network, "10.128.0.0/14:9") || !strings.Contains(network, "172.30.0.0/16") || !strings.Contains(network, networkplugin.Multitenant) {
		t.Errorf("oc get clusternetwork:\n%s", network)
	}
	nodes, err := s.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, node := range nodes.Items {
		want = append(want, node.Name+" "+node.Spec.PodCIDR)
	}
	// Subnets must be allocated in the documented order, in which the bits in the lower octet are
	// zero first.
	var subnets []string
	for _, node := range nodes.Items {
		subnets = append(subnets, node.Spec.PodCIDR)
	}
	slices.Sort(subnets)
	if got := strings.Join(subnets, " "); got != "10.128.0.0/23 10.129.0.0/23 10.130.0.0/23" {
		t.Errorf("subnets of the nodes: %s", got)
	}
	got := strings.Fields(strings.ReplaceAll(s.OC("get", "hostsubnets", "-o", `jsonpath={range .items[*]}{.host}={.subnet} {end}`), "=", " "))
	if text := strings.Join(got, " "); text != strings.Join(want, " ") {
		t.Errorf("HostSubnets %q, nodes %q", text, want)
	}
	if id := (tenant{Cluster: s.In("default")}).netID(); id != "0" {
		t.Errorf("network ID of the project default: %s", id)
	}
	if blue, red := s.blue.netID(), s.red.netID(); blue == red || blue == "0" || red == "0" {
		t.Errorf("network IDs of two projects: %s and %s", blue, red)
	}
	if _, err := s.TryOC("patch", "clusternetwork", "default", "--type=merge", "-p", `{"pluginName":"`+networkplugin.Subnet+`"}`); err == nil || !strings.Contains(err.Error(), "change networkConfig") {
		t.Errorf("change of the network through the API: %v", err)
	}
}

func TestProjectsAreIsolatedJoinedAndGlobal(t *testing.T) {
	s := sharedTenants(t)
	s.reach(s.blue, s.blue, true)
	s.reach(s.red, s.red, true)
	s.reach(s.blue, s.red, false)
	for _, pod := range []string{"far", "distant"} {
		s.WaitFetch("near", "http://"+pod+"/", s.blue.marker(pod)) // also check DNS
	}

	s.podNetwork("join-projects", "--to="+s.blue.Namespace, s.red.Namespace)
	if blue, red := s.blue.netID(), s.red.netID(); blue != red {
		t.Errorf("network IDs of joined projects: %s and %s", blue, red)
	}
	s.reach(s.blue, s.red, true)

	s.podNetwork("isolate-projects", s.red.Namespace)
	s.reach(s.blue, s.red, false)

	s.OC("label", "namespace", s.red.Namespace, "open=true")
	s.podNetwork("make-projects-global", "--selector=open=true")
	if id := s.red.netID(); id != "0" {
		t.Errorf("network ID of a global project: %s", id)
	}
	s.reach(s.blue, s.red, true)
	s.podNetwork("isolate-projects", "--selector=open=true")
	s.reach(s.blue, s.red, false)
	s.podNetwork("join-projects", "--to="+s.blue.Namespace, "--selector=open=true")
	if blue, red := s.blue.netID(), s.red.netID(); blue != red {
		t.Errorf("network IDs of projects joined by a label: %s and %s", blue, red)
	}
	s.podNetwork("isolate-projects", s.red.Namespace)
	s.reach(s.blue, s.red, false)

	if output, err := s.TryOC("adm", "pod-network", "isolate-projects", "default"); err == nil || !strings.Contains(err.Error(), `network isolation for project "default" is forbidden`) {
		t.Errorf("isolation of the project default: %v\n%s", err, output)
	}
}

// route requests a route's page from the router.
func (s tenants) route(host string) (string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: s.Dial}}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+s.Address.String()+"/", nil)
	if err != nil {
		return "", err
	}
	request.Host = host
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	return string(page), err
}

func TestPlatformReachesIsolatedProjects(t *testing.T) {
	s := sharedTenants(t)
	for _, pod := range []string{"far", "distant"} {
		host := pod + ".multitenant.example.com"
		s.OC("expose", "service", pod, "--hostname="+host)
		s.WaitFor("page through the router", func(context.Context) error {
			page, err := s.route(host)
			if err == nil && !strings.Contains(page, s.blue.marker(pod)) {
				err = fmt.Errorf("the response is %q", page)
			}
			return err
		})
		if output := s.OC("get", "--raw", "/api/v1/namespaces/"+s.Namespace+"/pods/"+pod+":8080/proxy/"); !strings.Contains(output, s.blue.marker(pod)) {
			t.Errorf("page through the API server: %q", output)
		}
	}
	// All projects can reach the default project, which contains the API server's service. The
	// status shows that the API server has responded, because it rejects requests without TLS.
	for _, pod := range pods() {
		_, err := s.TryOC("exec", pod, "--", "timeout", "5", "wget", "-q", "-O", "-", "http://kubernetes.default.svc:443/")
		if err == nil || !strings.Contains(err.Error(), "400 Bad Request") {
			t.Errorf("request from %s to the API server: %v", pod, err)
		}
	}
}
