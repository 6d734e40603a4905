package flannel

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// master makes etcd listen on all addresses, so that flanneld on each host can use it.
const master = `{networkConfig: {networkPluginName: cni}, etcdConfig: {address: "0.0.0.0:2379"}}`

// Host is a host in a cluster whose pods flannel connects.
type Host struct {
	*kit.Cluster
	// Node is the node's name.
	Node   string
	Files  Files
	Daemon *Daemon
}

// Hosts contains the hosts of a cluster. The first host is the master.
type Hosts []*Host

// NewHosts starts a cluster with two hosts, "first" and "second". The hosts do not become ready
// until Hosts.Start is called.
func NewHosts(t testing.TB) Hosts {
	t.Helper()
	files := []Files{NewFiles(t), NewFiles(t)}
	first := kit.New(t, kit.Options{Segment: true, OtherNetwork: true, Master: master, Node: files[0].Node() + "\nnodeName: first"})
	hosts := Hosts{{Cluster: first, Node: "first", Files: files[0]}}
	first.Up()
	second := first.NewHost("second", kit.Options{OtherNetwork: true, Node: files[1].Node()})
	hosts = append(hosts, &Host{Cluster: second, Node: "second", Files: files[1]})
	second.JoinWith(first.APIURL(), first.Token())
	return hosts
}

// Start starts flanneld on all hosts with the same settings. It waits until the nodes are ready.
func (h Hosts) Start(t testing.TB, settings ...string) {
	t.Helper()
	for _, host := range h {
		host.Daemon = Start(t, host.Cluster, host.Files, append(slices.Clone(settings), "NODE_NAME="+host.Node)...)
	}
	for _, host := range h {
		h[0].WaitFor("ready node "+host.Node, func(ctx context.Context) error {
			condition, err := h.Ready(ctx, host.Node)
			if err == nil && condition.Status != corev1.ConditionTrue {
				err = fmt.Errorf("the node is not ready: %s", condition.Message)
			}
			return err
		})
	}
}

// StartWithAPI starts flanneld on all hosts with the given backend, such as `vxlan`. flanneld
// stores its subnets in the Kubernetes API.
func (h Hosts) StartWithAPI(t testing.TB, backend string) {
	t.Helper()
	c := h[0].In("flannel")
	c.OC("apply", "-f", c.RepositoryFile("examples", "flannel", "subnet-manager.yaml"))
	kubeconfig, settings := c.Path("flanneld.kubeconfig"), c.Path("net-conf.json")
	write(t, kubeconfig, c.OC("serviceaccounts", "create-kubeconfig", "flanneld"))
	write(t, settings, h.NetConf(t, backend))
	h.Start(t, fmt.Sprintf(`FLANNEL_OPTIONS="-ip-masq -kube-subnet-mgr -kubeconfig-file=%s -net-config-path=%s"`, kubeconfig, settings))
}

// NetConf returns the example flannel settings with a different backend.
func (h Hosts) NetConf(t testing.TB, backend string) string {
	t.Helper()
	content, err := os.ReadFile(h[0].RepositoryFile("examples", "flannel", "net-conf.json"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(content), "host-gw", backend, 1)
}

// Ready returns a node's Ready condition.
func (h Hosts) Ready(ctx context.Context, node string) (corev1.NodeCondition, error) {
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

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
