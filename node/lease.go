package node

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// renewLease renews the lease of a Node, and creates it if it does not exist. The kubelet alone
// would take several seconds longer. It checks for a Node when it starts, usually just before it
// creates the Node, and checks again only after ten seconds. If the API server does not respond
// yet, the kubelet's retry delay doubles up to seven seconds.
func renewLease(ctx context.Context, client kubernetes.Interface, name string, seconds int32) error {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("renew lease of node %q: %w", name, err)
	}
	now, leases := metav1.NewMicroTime(time.Now()), client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: name, UID: node.UID},
		}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if lease, err = leases.Get(ctx, name, metav1.GetOptions{}); err == nil {
			lease.Spec.RenewTime = &now
			_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		}
	}
	if err != nil && !apierrors.IsConflict(err) { // on a conflict, the kubelet has renewed the lease
		return fmt.Errorf("renew lease of node %q: %w", name, err)
	}
	return nil
}
