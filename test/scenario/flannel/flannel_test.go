// Package flannel proves clusters whose pods an administrator's CNI plugin connects
// (networkConfig.networkPluginName: cni). The plugin is flannel, a real flanneld on each of two
// hosts: with etcd and host-gw as OpenShift Container Platform 3.9 Architecture, 5.3.2.1 Flannel
// SDN describes, and with the Kubernetes API and VXLAN.
package flannel

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
	"github.com/slipway-platform/slipway/test/kit/flannel"
)

func TestMain(m *testing.M) { kit.Main(m) }

// master makes etcd listen on all addresses, because flanneld of each host uses it.
const master = `{networkConfig: {networkPluginName: cni}, etcdConfig: {address: "0.0.0.0:2379"}}`

// host is a host of the cluster with its flannel.
type host struct {
	*kit.Cluster
	node   string
	files  flannel.Files
	daemon *flannel.Daemon
}

// hosts are the hosts of the cluster. The first one is the master.
type hosts []*host

func newHosts(t *testing.T) hosts {
	t.Helper()
	files := []flannel.Files{flannel.NewFiles(t), flannel.NewFiles(t)}
	first := kit.New(t, kit.Options{Segment: true, OtherNetwork: true, Master: master, Node: files[0].Node() + "\nnodeName: first"})
	list := hosts{{Cluster: first, node: "first", files: files[0]}}
	first.Up()
	second := first.NewHost("second", kit.Options{OtherNetwork: true, Node: files[1].Node()})
	list = append(list, &host{Cluster: second, node: "second", files: files[1]})
	second.JoinWith(first.APIURL(), first.Token())
	return list
}

// start starts flanneld on all hosts with the same settings, and waits until the nodes are ready.
func (h hosts) start(t *testing.T, settings ...string) {
	t.Helper()
	for _, host := range h {
		host.daemon = flannel.Start(t, host.Cluster, host.files, append(slices.Clone(settings), "NODE_NAME="+host.node)...)
	}
	for _, host := range h {
		h[0].WaitFor("ready node "+host.node, func(ctx context.Context) error {
			condition, err := h.ready(ctx, host.node)
			if err == nil && condition.Status != corev1.ConditionTrue {
				err = fmt.Errorf("it is not ready: %s", condition.Message)
			}
			return err
		})
	}
}

// ready returns the condition Ready of a node.
func (h hosts) ready(ctx context.Context, node string) (corev1.NodeCondition, error) {
	object, err := h[0].Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return corev1.NodeCondition{}, err
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition, nil
		}
	}
	return corev1.NodeCondition{}, fmt.Errorf("node %s has no condition Ready", node)
}

// stop stops flanneld on all hosts, and removes the objects that it and the CNI plugins have
// created.
func (h hosts) stop(t *testing.T) {
	t.Helper()
	for _, host := range h {
		host.daemon.Stop()
		if err := flannel.Remove(host.Cluster); err != nil {
			t.Fatal(err)
		}
		host.output(t, "ip", "-4", "route", "flush", "root", "10.128.0.0/14")
	}
}

// routes returns the routes of a host to pods.
func (h *host) routes(t *testing.T) string {
	t.Helper()
	return h.output(t, "ip", "-4", "route", "show", "root", "10.128.0.0/14")
}

// output runs a program on the host and returns its output.
func (h *host) output(t *testing.T, command ...string) (output string) {
	t.Helper()
	err := h.Do(func() error {
		content, err := exec.Command(command[0], command[1:]...).CombinedOutput()
		output = string(content)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, output)
	}
	return output
}

// server returns a pod on a node that serves its name over HTTP on port 8080, and on the host port
// 9080, with a service.
func server(name, node string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: %[1]s}}
spec:
  nodeSelector: {kubernetes.io/hostname: %[2]s}
  terminationGracePeriodSeconds: 1
  containers:
  - name: server
    image: %[3]s
    command: [sh, -c, "mkdir /tmp/www && echo I am $(hostname) >/tmp/www/index.html && exec httpd -f -vv -p 8080 -h /tmp/www"]
    ports: [{containerPort: 8080, hostPort: 9080}]
    readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: %[1]s}, ports: [{port: 80, targetPort: 8080}]}
---
`, name, node, kit.ToolsImage)
}

// checkPods creates a pod on each host, and checks that they reach each other, the outside, and
// services by name, and that a route leads to each of them.
func (h hosts) checkPods(t *testing.T) {
	t.Helper()
	c := h[0].Cluster.For(t)
	for _, host := range h {
		c.Apply(server("pod-"+host.node, host.node))
	}
	for i, host := range h {
		pod := c.WaitPodRunning("pod-" + host.node)
		address, subnet := netip.MustParseAddr(pod.Status.PodIP), netip.MustParsePrefix(host.files.Subnet())
		if !subnet.Masked().Contains(address) {
			t.Errorf("pod %s has the address %s, outside of flannel's subnet %s", pod.Name, address, subnet)
		}
		other := h[1-i]
		page := "I am pod-" + host.node
		from := c.WaitPodRunning("pod-" + other.node)
		c.WaitFetch(from.Name, fmt.Sprintf("http://%s:8080/", address), page)
		c.WaitFetch(from.Name, fmt.Sprintf("http://pod-%s.%s.svc/", host.node, c.Namespace), page)
		c.WaitFetch(from.Name, fmt.Sprintf("http://%s:9080/", host.Address), page)
		c.WaitFor("the address of the client in the log of "+pod.Name, func(context.Context) error {
			log, err := c.TryOC("logs", pod.Name)
			if err == nil && !strings.Contains(log, from.Status.PodIP) {
				err = fmt.Errorf("the log is %q", log)
			}
			return err
		})
		c.OC("expose", "service", pod.Name, "--hostname="+pod.Name+".example.com")
		c.WaitFor("page through the route of "+pod.Name, func(ctx context.Context) error { return fetchRoute(ctx, c, pod.Name+".example.com", page) })
	}
}
