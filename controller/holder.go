package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// LeaseHolder is an instance that should hold a Lease. Before the instance calls a storage system,
// it confirms that it still holds the Lease, which can expire while the process is paused.
type LeaseHolder struct {
	Client kubernetes.Interface
	// Namespace and Lease are the namespace and name of the Lease.
	Namespace, Lease string
	// Identity is the unique name of the instance.
	Identity string
}

// Confirm reads the Lease from etcd and returns an error if another instance holds it. An instance
// that becomes the leader later can read everything that was written before the call to Confirm.
func (h *LeaseHolder) Confirm(ctx context.Context) error {
	lease, err := h.Client.CoordinationV1().Leases(h.Namespace).Get(ctx, h.Lease, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read lease %q: %w", h.Lease, err)
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder != h.Identity {
		return fmt.Errorf("confirm leadership: %q no longer holds the lease %q; the new leader repeats the operation", h.Identity, h.Lease)
	}
	return nil
}
