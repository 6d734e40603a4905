package platform

import (
	"fmt"
	"net"
	"net/netip"

	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/controller/ingressip"
	"github.com/slipway-platform/slipway/controller/unidle"
	"github.com/slipway-platform/slipway/network/agent"
	"github.com/slipway-platform/slipway/network/dns"
	"github.com/slipway-platform/slipway/network/idle"
	"github.com/slipway-platform/slipway/network/policy"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// network returns the agent that connects the pods of the node.
func (h *Host) network() (component.Component, error) {
	client, err := clientFor(h.credentials.AgentKubeconfig)
	if err != nil {
		return nil, err
	}
	dnsIP, err := netip.ParseAddr(h.dnsHost())
	if err != nil {
		return nil, err
	}
	programs, err := h.programs()
	if err != nil {
		return nil, err
	}
	cluster, _ := h.Master.ClusterNetwork()
	return &agent.Agent{
		NodeName:     h.Node.NodeName,
		Client:       client,
		Bridge:       h.Node.Slipway.Bridge,
		NFTTable:     h.Node.Slipway.NFTTable,
		ClusterCIDR:  cluster,
		ServiceCIDR:  h.Master.ServiceNetwork(),
		ConfDir:      h.cniConfDir(),
		BinDir:       programs.Dir,
		StateDir:     h.cniStateDir(),
		PolicySocket: h.policySocket(),
		MTU:          int(h.Node.NetworkConfig.MTU),
		DNSDevice:    h.Node.Slipway.DNSDevice,
		DNSIP:        dnsIP,
	}, nil
}

// networkPolicy returns the component that enforces network policies for the pods of the node.
func (h *Host) networkPolicy() (component.Component, error) {
	client, err := clientFor(h.credentials.AgentKubeconfig)
	if err != nil {
		return nil, err
	}
	return &policy.Enforcer{
		NodeName: h.Node.NodeName, Client: client, Table: h.PolicyTable(),
		Socket: h.policySocket(), LeaseDir: agent.LeaseDir(h.cniStateDir()),
	}, nil
}

func (h *Host) cniStateDir() string { return h.path("cni", "state") }

func (h *Host) cniConfDir() string { return h.path("cni", "conf") }

// dns returns the DNS server of pods.
func (h *Host) dns() (component.Component, error) {
	client, err := readKubeconfig(h.credentials.DNSKubeconfig)
	if err != nil {
		return nil, err
	}
	return &dns.Server{
		Address: h.Node.DNSAddress(), Domain: h.Node.DNSDomain, Config: client, Upstreams: h.Node.Nameservers(),
	}, nil
}

// masterDNS returns the DNS server for clients outside of pods, if dnsConfig is set.
func (h *Host) masterDNS() (component.Component, error) {
	settings := h.Master.DNSConfig
	if settings == nil {
		return component.Disabled("master-dns"), nil
	}
	client, err := readKubeconfig(h.credentials.DNSKubeconfig)
	if err != nil {
		return nil, err
	}
	return &dns.Server{
		Part: "master-dns", Address: settings.BindAddress, Domain: h.Node.DNSDomain, Config: client,
		ClusterOnly: !settings.AllowRecursiveQueries,
	}, nil
}

func (h *Host) dnsHost() string {
	host, _, err := net.SplitHostPort(h.Node.DNSAddress())
	if err != nil {
		return ""
	}
	return host
}

// idling holds connections to idle services, unless enableUnidling is false.
func (h *Host) idling() (component.Component, error) {
	client, err := clientFor(h.credentials.IdlingKubeconfig)
	if err != nil {
		return nil, err
	}
	enabled := h.Node.EnableUnidling
	return &idle.Proxy{
		Client: client, Table: h.IdleTable(), Host: h.Node.NodeName, Policed: policy.Isolation(h.PolicyTable()), Disabled: enabled != nil && !*enabled,
	}, nil
}

// unidling scales up the workloads of services when a node reports a connection.
func (h *Host) unidling() (component.Component, error) {
	return &unidle.Services{Deps: h.deps}, nil
}

// ingressAddresses assigns addresses to services of type LoadBalancer, if there is a network for
// them.
func (h *Host) ingressAddresses() (component.Component, error) {
	network := h.Master.IngressNetwork()
	if !network.IsValid() {
		return component.Disabled("ingress-addresses"), nil
	}
	return &ingressip.Addresses{Deps: h.deps, Network: network}, nil
}

// clientFor returns a client with the credentials of a kubeconfig.
func clientFor(kubeconfig string) (kubernetes.Interface, error) {
	config, err := readKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client of %q: %w", kubeconfig, err)
	}
	return client, nil
}
