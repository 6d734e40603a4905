// Package reach holds admission plugins that keep tenants from taking over or reaching addresses that are not theirs.
// ExternalIPRanger checks the external addresses of services, and RestrictedEndpointsAdmission checks what endpoints
// point to.
//
// Both refuse addresses of the platform: of its networks, of its nodes, and those that mean something to each host,
// such as loopback and link-local addresses.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.3.2 and 3.3.5; CVE-2020-8554.
package reach

import (
	"io"
	"net/netip"

	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
)

// The plugins' names as the configuration has them.
const (
	ExternalIPRanger    = "ExternalIPRanger"
	RestrictedEndpoints = "openshift.io/RestrictedEndpointsAdmission"
)

// Networks are what the plugins know of the cluster's addresses.
type Networks struct {
	// External are the networks of which users choose external addresses. One with a ! in front of it is excepted
	// from the others. Without any, users choose none.
	External []string
	// Ingress is the network of which services of type LoadBalancer get addresses, if it is valid.
	Ingress netip.Prefix
	// Platform are the networks that only the platform uses. Nodes' addresses need not be among them: they are read
	// from the nodes. A prefix that is not valid has no addresses.
	Platform []Network
}

// Network is a network of the platform.
type Network struct {
	Prefix netip.Prefix
	// Name completes the sentence "the address is in ...".
	Name string
}

// Feature has both plugins.
func Feature(networks Networks) apiserver.Feature {
	reserved := newReserved(networks.Platform)
	return apiserver.Feature{Admission: []apiserver.Admission{
		{Name: ExternalIPRanger, New: func(io.Reader) (admission.Interface, error) {
			return newRanger(networks.External, networks.Ingress, reserved)
		}},
		{Name: RestrictedEndpoints, New: func(io.Reader) (admission.Interface, error) { return newEndpoints(reserved), nil }},
	}}
}
