package nodegroup

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/nodegroup"
)

// fixture is a cluster with nodes in the node-config-infra group.
type fixture struct {
	t       *testing.T
	client  *fake.Clientset
	factory informers.SharedInformerFactory
	rollout *rollout
}

func newFixture(t *testing.T, nodes ...string) *fixture {
	t.Helper()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	f := &fixture{t, client, factory, &rollout{client: client, nodes: core.Nodes().Lister(), configMaps: core.ConfigMaps().Lister()}}
	for _, name := range nodes {
		f.setNode(name, func(node *corev1.Node) {
			node.Annotations[nodegroup.GroupAnnotation] = "node-config-infra"
			setReady(node, corev1.ConditionTrue, time.Now())
		})
	}
	return f
}

func setReady(node *corev1.Node, status corev1.ConditionStatus, since time.Time) {
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(since)}}
}

// setNode creates or changes a node.
func (f *fixture) setNode(name string, change func(*corev1.Node)) {
	f.t.Helper()
	nodes := f.client.CoreV1().Nodes()
	node, err := nodes.Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		node, err = nodes.Create(f.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	if node.Annotations == nil {
		node.Annotations, node.Labels = map[string]string{}, map[string]string{}
	}
	change(node)
	if _, err := nodes.Update(f.t.Context(), node, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// reconcile reconciles the group with the given ConfigMap content. It returns the nodes that have
// this content as their desired configuration.
func (f *fixture) reconcile(content string) (named []string) {
	f.t.Helper()
	nodes, err := f.client.CoreV1().Nodes().List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	core := f.factory.Core().V1()
	for i := range nodes.Items {
		if err := core.Nodes().Informer().GetStore().Add(&nodes.Items[i]); err != nil {
			f.t.Fatal(err)
		}
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-node", Name: "node-config-infra"}, Data: map[string]string{"node-config.yaml": content}}
	if err := core.ConfigMaps().Informer().GetStore().Add(configMap); err != nil {
		f.t.Fatal(err)
	}
	// Ignore the error, which might only be a requeue delay.
	_ = f.rollout.reconcile(f.t.Context(), controller.Key{Namespace: "openshift-node", Name: "node-config-infra"})
	if nodes, err = f.client.CoreV1().Nodes().List(f.t.Context(), metav1.ListOptions{}); err != nil {
		f.t.Fatal(err)
	}
	for _, node := range nodes.Items {
		if node.Annotations[nodegroup.DesiredAnnotation] == nodegroup.Desired("node-config-infra", content) {
			named = append(named, node.Name)
		}
	}
	slices.Sort(named)
	return named
}

func (f *fixture) wantNamed(content, want string) {
	f.t.Helper()
	if got := strings.Join(f.reconcile(content), " "); got != want {
		f.t.Errorf("nodes with the desired configuration: %q, want %q", got, want)
	}
}

func report(key, hash string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Annotations[key] = hash }
}

const first, second = "apiVersion: v1\n", "apiVersion: v1\nkind: NodeConfig\n"

func TestNodesGetConfigurationOneAfterAnother(t *testing.T) {
	f := newFixture(t, "a", "b", "c")
	f.setNode("other", func(node *corev1.Node) { setReady(node, corev1.ConditionTrue, time.Now()) })
	f.wantNamed(first, "a")
	f.wantNamed(first, "a")
	f.setNode("a", report(nodegroup.HashAnnotation, nodegroup.Hash(first)))
	f.setNode("b", func(node *corev1.Node) { setReady(node, corev1.ConditionFalse, time.Now()) })
	f.wantNamed(first, "a c")
	f.setNode("c", report(nodegroup.HashAnnotation, nodegroup.Hash(first)))
	f.wantNamed(first, "a c")
	f.setNode("b", func(node *corev1.Node) { setReady(node, corev1.ConditionTrue, time.Now()) })
	f.wantNamed(first, "a b c")
}

func TestLostNodeDelaysOthersForSomeTimeOnly(t *testing.T) {
	f := newFixture(t, "a", "b")
	f.wantNamed(first, "a")
	f.setNode("a", func(node *corev1.Node) { setReady(node, corev1.ConditionUnknown, time.Now()) })
	f.wantNamed(first, "a")
	f.setNode("a", func(node *corev1.Node) { setReady(node, corev1.ConditionUnknown, time.Now().Add(-2*lostTimeout)) })
	f.wantNamed(first, "a b")
}

func TestRejectedConfigurationIsAppliedToOneNodeOnly(t *testing.T) {
	f := newFixture(t, "a", "b")
	for _, name := range []string{"a", "b"} {
		f.setNode(name, func(node *corev1.Node) {
			node.Annotations[nodegroup.HashAnnotation] = nodegroup.Hash(first)
			node.Annotations[nodegroup.DesiredAnnotation] = nodegroup.Desired("node-config-infra", first)
		})
	}
	f.wantNamed(second, "a")
	f.setNode("a", report(nodegroup.RefusedAnnotation, nodegroup.Hash(second)))
	f.wantNamed(second, "a")
	f.wantNamed(first, "a b") // a new configuration makes the node withdraw the rejection
}

func TestNodesHaveLabelsOfGroup(t *testing.T) {
	f := newFixture(t, "a")
	f.setNode("a", func(node *corev1.Node) { node.Labels["zone"] = "own" })
	labels := func() map[string]string {
		node, err := f.client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return node.Labels
	}
	f.reconcile("kubeletArguments: {node-labels: ['node-role.kubernetes.io/infra=true,disk=ssd']}\n")
	if want := map[string]string{"zone": "own", "node-role.kubernetes.io/infra": "true", "disk": "ssd"}; !maps.Equal(labels(), want) {
		t.Errorf("labels are %v, want %v", labels(), want)
	}
	f.reconcile("kubeletArguments: {node-labels: [disk=nvme]}\n")
	if want := map[string]string{"zone": "own", "disk": "nvme"}; !maps.Equal(labels(), want) {
		t.Errorf("labels are %v, want %v", labels(), want)
	}
}
