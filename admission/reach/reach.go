// Package reach contains admission plugins that prevent tenants from hijacking other tenants'
// addresses or reaching protected addresses. ExternalIPRanger checks the external addresses of
// services. RestrictedEndpointsAdmission checks the addresses in endpoints.
//
// Both plugins reject platform addresses: addresses in the platform's networks, addresses of its
// nodes, and addresses that have a special meaning on each host, such as loopback and link-local
// addresses.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.3.2 and 3.3.5; CVE-2020-8554.
package reach

import (
	"io"
	"net/netip"

	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
)

// Names of the plugins in the configuration.
const (
	ExternalIPRanger    = "ExternalIPRanger"
	RestrictedEndpoints = "openshift.io/RestrictedEndpointsAdmission"
)

// Networks describes the cluster's addresses.
type Networks struct {
	// External lists the networks that users can choose external addresses from. The prefix ! excludes
	// a network. If External is empty, users cannot choose an address.
	External []string
	// Ingress is the network that provides the addresses of LoadBalancer services. An invalid
	// prefix means that there is no ingress network.
	Ingress netip.Prefix
	// Pods and Services are the pod networks and the service networks.
	Pods, Services []netip.Prefix
	// Hosts lists this host's addresses. The plugins read the addresses of all nodes from the Node
	// objects. Invalid addresses are ignored.
	Hosts []netip.Addr
	// Resolver is the address of the pods' DNS server. It is optional.
	Resolver netip.Addr
}

// network is a network that only the platform uses. An invalid prefix contains no addresses.
type network struct {
	prefix netip.Prefix
	// name describes the network in error messages, in the form "the address is in <name>".
	name string
}

// platform returns the networks that only the platform uses.
func (n Networks) platform() []network {
	var networks []network
	for _, services := range n.Services {
		networks = append(networks, network{services, "the service network"})
	}
	for _, pods := range n.Pods {
		networks = append(networks, network{pods, "the pod network"})
	}
	single := func(address netip.Addr, name string) {
		if address.IsValid() {
			networks = append(networks, network{netip.PrefixFrom(address, address.BitLen()), name})
		}
	}
	for _, host := range n.Hosts {
		single(host, "the network of the nodes")
	}
	single(n.Resolver, "the network of the DNS server")
	return networks
}

// Feature returns the feature that adds both admission plugins to the API server.
func Feature(networks Networks) apiserver.Feature {
	reserved := newReserved(networks.platform())
	return apiserver.Feature{Admission: []apiserver.Admission{
		{Name: ExternalIPRanger, New: func(io.Reader) (admission.Interface, error) {
			return newRanger(networks.External, networks.Ingress, reserved)
		}},
		{Name: RestrictedEndpoints, New: func(io.Reader) (admission.Interface, error) { return newEndpoints(reserved), nil }},
	}}
}
