package node

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestLeaseOfNodeIsCreatedAndRenewed(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "uid"}}
	client := fake.NewClientset(node)
	renew := func() *coordinationv1.Lease {
		if err := renewLease(t.Context(), client, "one", 40); err != nil {
			t.Fatal(err)
		}
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "one", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	lease := renew()
	if len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0].UID != "uid" || lease.OwnerReferences[0].Kind != "Node" {
		t.Errorf("the owners are %v", lease.OwnerReferences)
	}
	spec := lease.Spec
	if *spec.HolderIdentity != "one" || *spec.LeaseDurationSeconds != 40 || spec.RenewTime.IsZero() {
		t.Errorf("the lease is %v", spec)
	}
	if again := renew(); !again.Spec.RenewTime.After(spec.RenewTime.Time) {
		t.Errorf("an existing lease was not renewed: %v", again.Spec)
	}
	if err := renewLease(t.Context(), client, "two", 40); err == nil {
		t.Error("a lease has been created for a missing Node")
	}
}
