package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestLeaseBelongsToNode(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "uid"}}
	client := fake.NewClientset(node)
	for range 2 { // the second call finds the lease
		if err := createLease(t.Context(), client, "one", 40); err != nil {
			t.Fatal(err)
		}
	}
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0].UID != "uid" || lease.OwnerReferences[0].Kind != "Node" {
		t.Errorf("the owners are %v", lease.OwnerReferences)
	}
	spec := lease.Spec
	if *spec.HolderIdentity != "one" || *spec.LeaseDurationSeconds != 40 || spec.RenewTime.IsZero() {
		t.Errorf("the lease is %v", spec)
	}
	if err := createLease(t.Context(), client, "two", 40); err == nil {
		t.Error("a lease has been created for a missing Node")
	}
}
