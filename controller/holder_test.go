package controller

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

func TestOnlyHolderOfLeaseIsConfirmed(t *testing.T) {
	for name, test := range map[string]struct {
		lease *coordinationv1.Lease
		want  bool
	}{
		"no lease":         {nil, false},
		"released":         {&coordinationv1.Lease{}, false},
		"another instance": {&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("second")}}, false},
		"this instance":    {&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("first")}}, true},
	} {
		client := fake.NewClientset()
		if test.lease != nil {
			test.lease.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: "lease"}
			client = fake.NewClientset(test.lease)
		}
		holder := &LeaseHolder{Client: client, Namespace: "ns", Lease: "lease", Identity: "first"}
		if err := holder.Confirm(t.Context()); (err == nil) != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
