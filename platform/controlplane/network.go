package controlplane

import (
	"github.com/slipway-platform/slipway/admission/unenforced"
	networkapi "github.com/slipway-platform/slipway/apigroup/network"
	"github.com/slipway-platform/slipway/apigroup/route/ingress"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/controller/endpoints"
	"github.com/slipway-platform/slipway/controller/ingressip"
	networkcontroller "github.com/slipway-platform/slipway/controller/network"
	"github.com/slipway-platform/slipway/controller/unidle"
	"github.com/slipway-platform/slipway/network/dns"
	"github.com/slipway-platform/slipway/network/egressip/allocator"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// podNetwork returns the controllers for the pod network objects.
func (h *Host) podNetwork() (component.Component, error) {
	return &networkcontroller.Controllers{Deps: h.deps, Client: h.networkClient, Network: h.Master.NetworkObject(), DualStack: h.Master.DualStack()}, nil
}

// egressIPs returns the controller that assigns egress IPs to hosts with egressCIDRs.
func (h *Host) egressIPs() (component.Component, error) {
	if h.Master.HasOtherNetwork() {
		return component.Disabled("egress-ips"), nil
	}
	return &allocator.Allocator{Client: h.networkClient}, nil
}

// networkFeatures returns the pod network's API group, and warnings about policies that the network
// plugin does not enforce.
func (h *Host) networkFeatures() []apiserver.Feature {
	group := networkapi.Feature(h.Master.NetworkObject(), h.Master.DualStack())
	return append([]apiserver.Feature{group}, unenforced.Network(h.Master.NetworkConfig.NetworkPluginName)...)
}

// masterDNS returns the component that runs the DNS server for clients outside pods, if dnsConfig
// is set.
func (h *Host) masterDNS() (component.Component, error) {
	settings := h.Master.DNSConfig
	if settings == nil {
		return component.Disabled("master-dns"), nil
	}
	client, err := pki.ReadKubeconfig(h.Credentials.DNSKubeconfig)
	if err != nil {
		return nil, err
	}
	client.Host = h.APIURL("127.0.0.1") // the kubeconfig contains the node's URL
	return &dns.Server{
		Part: "master-dns", Address: settings.BindAddress, OnlyIPv4: settings.BindNetwork == "tcp4", Domain: h.Node.DNSDomain, Config: client,
		ClusterOnly: !settings.AllowRecursiveQueries, OldSRV: true, Networks: h.DNSNetworks(),
	}, nil
}

// unidling returns the component that scales up the workloads of idle services when a node reports
// a connection.
func (h *Host) unidling() (component.Component, error) {
	return &unidle.Services{Deps: h.deps}, nil
}

// orphanedEndpoints returns the component that deletes the endpoints of services that have lost
// their selector.
func (h *Host) orphanedEndpoints() (component.Component, error) {
	return &endpoints.Orphans{Deps: h.deps}, nil
}

// ingressAddresses returns the component that assigns addresses to services of type LoadBalancer,
// if a network for these addresses is configured.
func (h *Host) ingressAddresses() (component.Component, error) {
	network := h.Master.IngressNetwork()
	if !network.IsValid() {
		return component.Disabled("ingress-addresses"), nil
	}
	return &ingressip.Addresses{Deps: h.deps, Network: network}, nil
}

// ingress returns the component that creates routes for Ingress objects.
func (h *Host) ingress() (component.Component, error) {
	return &ingress.Controller{Deps: h.deps, Address: h.PublicAddress().String(), Domain: h.Master.RoutingConfig.Subdomain}, nil
}
