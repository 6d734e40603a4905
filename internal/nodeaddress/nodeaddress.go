// Package nodeaddress reads the addresses that kubelets report in the status of their Nodes.
package nodeaddress

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// Internal returns the first address of type InternalIP for which accepts returns true. accepts is
// a function such as netip.Addr.Is4. The result is invalid if the kubelet has not reported such an
// address.
func Internal(node *corev1.Node, accepts func(netip.Addr) bool) netip.Addr {
	for _, reported := range node.Status.Addresses {
		address, err := netip.ParseAddr(reported.Address)
		if err == nil && reported.Type == corev1.NodeInternalIP && accepts(address) {
			return address
		}
	}
	return netip.Addr{}
}
