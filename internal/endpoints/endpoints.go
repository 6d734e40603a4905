// Package endpoints says which endpoints of services a process on the host may connect to on behalf of users. A
// connection from the host reaches ports that are closed to everyone else, or that trust whoever is on the host.
package endpoints

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// mirror is the controller that makes slices of the Endpoints of services without a selector. It sets the label whatever
// labels the Endpoints have.
const mirror = "endpointslicemirroring-controller.k8s.io"

// Reachable tells whether an address of a slice may be connected to. Of Endpoints, which users write, it leaves out
// loopback and link-local addresses, and those for which host is true. The platform's own services may lead to the host,
// and so may other slices, which only the controller of pods and the cluster's administrators write.
func Reachable(slice *discoveryv1.EndpointSlice, address netip.Addr, host func(netip.Addr) bool) bool {
	if slice.Labels[discoveryv1.LabelManagedBy] != mirror {
		return true
	}
	address = address.Unmap()
	if address.IsLoopback() || address.IsUnspecified() || address.IsMulticast() || address.IsLinkLocalUnicast() {
		return false
	}
	return platform(slice.Namespace) || !host(address)
}

// platform tells whether a namespace has a name that users cannot request.
func platform(namespace string) bool {
	return namespace == "default" || namespace == "openshift" || strings.HasPrefix(namespace, "openshift-") || strings.HasPrefix(namespace, "kube-")
}

// OfHost tells whether an address is one of this machine's, as it has them now. When they cannot be read, each one is.
func OfHost(address netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(own, func(one net.Addr) bool {
		network, ok := one.(*net.IPNet)
		if !ok {
			return false
		}
		held, ok := netip.AddrFromSlice(network.IP)
		return ok && held.Unmap() == address
	})
}
