// Package endpoints restricts which service endpoints a process on the host connects to on behalf
// of users. Without restrictions, users could reach ports that only the host can reach, and servers
// that trust every client on the host.
package endpoints

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// Names of the Kubernetes controllers that create EndpointSlices and Endpoints for services with a
// selector. The labels discoveryv1.LabelManagedBy and ManagedBy contain these names. The constants
// are defined here because Kubernetes does not export them.
const (
	SliceController = "endpointslice-controller.k8s.io"
	Controller      = "endpoint-controller"
	ManagedBy       = "endpoints.kubernetes.io/managed-by"
)

// mirror is the controller that creates EndpointSlices from the Endpoints of services without a
// selector. It sets the managed-by label on every slice, regardless of the labels on the Endpoints.
const mirror = "endpointslicemirroring-controller.k8s.io"

// Reachable reports whether connections to an address in a slice are allowed. Users can write
// Endpoints, so loopback, link-local and host addresses in slices that mirror Endpoints are not
// allowed, except for host addresses in platform namespaces. Other slices can contain any address,
// because only controllers and cluster administrators write them.
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

// platform reports whether a namespace has a name that users cannot request.
func platform(namespace string) bool {
	return namespace == "default" || namespace == "openshift" ||
		strings.HasPrefix(namespace, "openshift-") || strings.HasPrefix(namespace, "kube-")
}

// OfHost reports whether an address currently belongs to this machine. It returns true if it cannot
// read the machine's addresses.
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
