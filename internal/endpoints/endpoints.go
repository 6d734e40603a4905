// Package endpoints restricts the endpoints of services that a process on the host connects to on
// behalf of users. A connection from the host can reach ports that other clients cannot, and
// servers that trust every client on the host.
package endpoints

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// mirror is the controller that creates EndpointSlices from the Endpoints of services without a
// selector. It sets the label on every slice, regardless of the labels of the Endpoints.
const mirror = "endpointslicemirroring-controller.k8s.io"

// Reachable reports whether a connection to an address of a slice is allowed. Users write
// Endpoints, so their loopback, link-local and host addresses are not allowed, except host
// addresses in namespaces of the platform. Only controllers and cluster administrators write other
// slices; those can point to the host.
func Reachable(slice *discoveryv1.EndpointSlice, address netip.Addr,
	host func(netip.Addr) bool) bool {
	if slice.Labels[discoveryv1.LabelManagedBy] != mirror {
		return true
	}
	address = address.Unmap()
	if address.IsLoopback() || address.IsUnspecified() || address.IsMulticast() || address.IsLinkLocalUnicast() {
		return false
	}
	return platform(slice.Namespace) || !host(address)
}

// platform reports whether users cannot request a namespace of this name.
func platform(namespace string) bool {
	return namespace == "default" || namespace == "openshift" ||
		strings.HasPrefix(namespace, "openshift-") || strings.HasPrefix(namespace, "kube-")
}

// OfHost reports whether an address currently belongs to this machine. If it cannot read the
// machine's addresses, it returns true.
func OfHost(address netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(addrs, func(addr net.Addr) bool {
		network, ok := addr.(*net.IPNet)
		if !ok {
			return false
		}
		ip, ok := netip.AddrFromSlice(network.IP)
		return ok && ip.Unmap() == address
	})
}
