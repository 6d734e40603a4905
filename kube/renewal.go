package kube

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// renewals reads kubelet leases with the API server's own client.
type renewals struct{ config *rest.Config }

// last returns the time of the last lease renewal by the kubelet with the given address, or the
// zero time if this is unknown.
func (r renewals) last(ctx context.Context, host string) time.Time {
	client, err := kubernetes.NewForConfig(r.config)
	if err != nil {
		return time.Time{}
	}
	// Resource version 0 allows a response from the cache.
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return time.Time{}
	}
	i := slices.IndexFunc(nodes.Items, func(node corev1.Node) bool {
		return slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == host })
	})
	if i < 0 {
		return time.Time{}
	}
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, nodes.Items[i].Name, metav1.GetOptions{})
	if err != nil || lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}
