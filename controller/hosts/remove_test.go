package hosts

import (
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"

	"github.com/slipway-platform/slipway/controller"
)

// removal is a cluster in which the host "second" has joined.
type removal struct {
	fixture
	remover *remover
	factory informers.SharedInformerFactory
}

func newRemoval(t *testing.T) removal {
	t.Helper()
	f := newFixture(t)
	joined := metav1.Time{Time: time.Now().Add(-time.Hour)}
	if err := f.register.change(t.Context(), "second", func(h *Host) { h.Joined, h.Group = joined, "infra" }); err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(f.client, 0)
	return removal{f, &remover{client: f.client, nodes: factory.Core().V1().Nodes().Lister(), register: f.register}, factory}
}

// reconcile reconciles a node from the cache. A nil node represents a deleted node.
func (r removal) reconcile(t *testing.T, node *corev1.Node) {
	t.Helper()
	store := r.factory.Core().V1().Nodes().Informer().GetStore()
	if node != nil {
		if err := store.Add(node); err != nil {
			t.Fatal(err)
		}
	}
	_ = r.remover.reconcile(t.Context(), controller.Key{Name: "second"}) // the error can be a delay
}

func (r removal) host(t *testing.T) Host {
	t.Helper()
	hosts, err := r.register.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return hosts["second"]
}

func TestNewNodeGetsFinalizerAndGroup(t *testing.T) {
	r := newRemoval(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "second", Finalizers: []string{"example.com/other"}}}
	if _, err := r.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t, node)
	stored, err := r.client.CoreV1().Nodes().Get(t.Context(), "second", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(stored.Finalizers, finalizer) || len(stored.Finalizers) != 2 || stored.Annotations["slipway.openshift.io/node-group"] != "node-config-infra" {
		t.Errorf("the node has finalizers %q and annotations %v", stored.Finalizers, stored.Annotations)
	}
}

func TestNodeExistsUntilCertificatesAreVoid(t *testing.T) {
	r := newRemoval(t)
	deleted := now()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "second", Finalizers: []string{"example.com/other", finalizer}}}
	if _, err := r.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	node.DeletionTimestamp = &deleted
	finalizers := func() int {
		stored, err := r.client.CoreV1().Nodes().Get(t.Context(), "second", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(stored.Finalizers)
	}
	r.reconcile(t, node)
	if !r.host(t).removed() || finalizers() != 2 {
		t.Errorf("after the deletion: removed %t, %d finalizers", r.host(t).removed(), finalizers())
	}
	earlier := metav1.Time{Time: deleted.Add(-time.Minute)}
	node.DeletionTimestamp = &earlier
	if err := r.register.change(t.Context(), "second", func(h *Host) { h.Removed = &earlier }); err != nil {
		t.Fatal(err)
	}
	requests := r.client.CertificatesV1().CertificateSigningRequests()
	for name, user := range map[string]string{"own": "system:node:second", "other": "system:node:third"} {
		request := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{Username: user},
		}
		if _, err := requests.Create(t.Context(), request, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.reconcile(t, node)
	if list, err := requests.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 || list.Items[0].Name != "other" {
		t.Errorf("the signing requests are %v, %v", list, err)
	}
	if finalizers() != 1 {
		t.Errorf("a minute later, the node has %d finalizers", finalizers())
	}
}

func TestPodsOfDeletedNodeAreEvictedUnlessItsHostIsOff(t *testing.T) {
	for name, tt := range map[string]struct {
		status  corev1.ConditionStatus
		taints  []corev1.Taint
		removed bool
	}{
		"ready":           {corev1.ConditionTrue, []corev1.Taint{{Key: "example.com/other"}}, false},
		"lost":            {corev1.ConditionUnknown, nil, true},
		"reported as off": {corev1.ConditionTrue, []corev1.Taint{{Key: corev1.TaintNodeOutOfService}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemoval(t)
			deleted := now()
			node := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "second", Finalizers: []string{finalizer}, DeletionTimestamp: &deleted},
				Spec:       corev1.NodeSpec{Taints: tt.taints},
				Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: tt.status}}},
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "shop"}, Spec: corev1.PodSpec{NodeName: "second"}}
			if _, err := r.client.CoreV1().Pods("shop").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			r.reconcile(t, node)
			if removed := r.host(t).removed(); removed != tt.removed {
				t.Errorf("after the deletion of the node with a pod, the host is removed: %t, want %t", removed, tt.removed)
			}
		})
	}
}

func TestDeletedNodeIsRecordedAsRemoved(t *testing.T) {
	r := newRemoval(t)
	r.reconcile(t, nil)
	if !r.host(t).removed() {
		t.Error("the certificates of a node that was deleted before its adoption are valid")
	}
}

// TestHostCanBeRemovedInSameSecondAsJoin checks that a host loses its certificates even if it is
// removed in the second in which it joined. In this case, the recorded times are equal, because
// they are in whole seconds.
func TestHostCanBeRemovedInSameSecondAsJoin(t *testing.T) {
	r := newRemoval(t)
	// The host is removed before the next second starts.
	joined := metav1.Time{Time: now().Add(time.Second)}
	if err := r.register.change(t.Context(), "second", func(h *Host) { h.Joined = joined }); err != nil {
		t.Fatal(err)
	}
	if err := r.remover.void(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if host := r.host(t); !host.removed() {
		t.Errorf("the host joined at %s and was removed at %s, but is not recorded as removed", host.Joined, host.Removed)
	}
}

func TestNodeOfRemovedHostIsDeleted(t *testing.T) {
	r := newRemoval(t)
	removed := now()
	if err := r.register.change(t.Context(), "second", func(h *Host) { h.Removed = &removed }); err != nil {
		t.Fatal(err)
	}
	for _, finalizers := range [][]string{nil, {finalizer}} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "second", Finalizers: finalizers}}
		if _, err := r.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.reconcile(t, node)
		if _, err := r.client.CoreV1().Nodes().Get(t.Context(), "second", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("with finalizers %q, the node exists: %v", finalizers, err)
		}
	}
}
