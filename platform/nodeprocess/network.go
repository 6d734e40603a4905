package nodeprocess

import (
	"context"
	"fmt"
	"net/netip"

	networkclient "github.com/openshift/client-go/network/clientset/versioned"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/network/agent"
	"github.com/slipway-platform/slipway/network/bandwidth"
	"github.com/slipway-platform/slipway/network/dns"
	"github.com/slipway-platform/slipway/network/idle"
	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/policy"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// network returns the agent that connects the node's pods to the network. If the administrator's
// CNI plugin connects the pods, network returns a component that replaces the agent.
func (h *Host) network() (component.Component, error) {
	dnsIP, err := netip.ParseAddr(h.Node.DNSHost())
	if err != nil {
		return nil, err
	}
	if h.Master.HasOtherNetwork() {
		configuration, programs := h.Node.CNIDirectories()
		return &agent.OtherNetwork{
			ConfDir: configuration, BinDirs: programs, FormerBridge: h.Node.Slipway.Bridge, DNSDevice: h.Node.Slipway.DNSDevice, DNSIP: dnsIP,
			SysctlRecord: h.SysctlRecord(),
		}, nil
	}
	client, network, err := h.agentClients()
	if err != nil {
		return nil, err
	}
	programs, err := h.Programs()
	if err != nil {
		return nil, err
	}
	return &agent.Agent{
		NodeName:    h.Node.NodeName,
		Client:      client,
		Bridge:      h.Node.Slipway.Bridge,
		NFTTable:    h.Node.Slipway.NFTTable,
		ServiceCIDR: h.Master.ServiceNetwork(),
		DualStack:   h.Master.DualStack(), SecondServiceCIDR: h.Master.SecondServiceNetwork(),
		ConfDir:      h.CNIConfDir(),
		BinDir:       programs.Dir,
		StateDir:     h.CNIStateDir(),
		SysctlRecord: h.SysctlRecord(),
		PolicySocket: h.PolicySocket(),
		MTU:          int(h.Node.NetworkConfig.MTU),
		Transport:    h.Node.Slipway.PodTransport,
		Tunnel:       h.tunnel,
		VXLANDevice:  h.Node.Slipway.VXLANDevice,
		Network:      network,
		DNSDevice:    h.Node.Slipway.DNSDevice,
		DNSIP:        dnsIP,
		HostPorts:    h.PortsForPods(!h.Joined()),

		CheckInterval: h.Node.SyncPeriod(),
	}, nil
}

// agentClients returns the clients for the components that connect pods.
func (h *Host) agentClients() (kubernetes.Interface, networkclient.Interface, error) {
	return host.NetworkClients(h.Credentials.AgentKubeconfig)
}

// networkPolicy returns the component that enforces network policies for the node's pods.
func (h *Host) networkPolicy() (component.Component, error) {
	if h.Master.HasOtherNetwork() {
		return component.Disabled("network-policy"), nil
	}
	client, network, err := h.agentClients()
	if err != nil {
		return nil, err
	}
	return &policy.Enforcer{
		NodeName: h.Node.NodeName, Client: client, Network: network, Table: h.PolicyTable(), Networks: h.ClusterNetworks(),
		DualStack: h.Master.DualStack(), Second: h.SecondNetworks(),
		Socket: h.PolicySocket(), LeaseDir: agent.LeaseDir(h.CNIStateDir()), Names: h.dnsNames, Resolvable: h.resolvable, Resolver: h.Node.DNSAddress(),
		Tunnel: h.tunnel, CheckInterval: h.Node.SyncPeriod(), Direct: h.Node.Slipway.PodConnections == config.PodConnectionsDirect,
	}, nil
}

// bandwidth returns the component that limits the bandwidth of the node's pods.
func (h *Host) bandwidth() (component.Component, error) {
	if h.Master.HasOtherNetwork() {
		return component.Disabled("bandwidth"), nil
	}
	client, err := pki.NewClient(h.Credentials.AgentKubeconfig)
	if err != nil {
		return nil, err
	}
	return &bandwidth.Limiter{
		NodeName: h.Node.NodeName, Client: client, Bridge: h.Node.Slipway.Bridge, LeaseDir: agent.LeaseDir(h.CNIStateDir()),
		DualStack: h.Master.DualStack(),
	}, nil
}

// dns returns the component that runs the pods' DNS server.
func (h *Host) dns() (component.Component, error) {
	client, err := pki.ReadKubeconfig(h.Credentials.DNSKubeconfig)
	if err != nil {
		return nil, err
	}
	server := &dns.Server{
		Address: h.Node.DNSAddress(), Domain: h.Node.DNSDomain, Config: client, Upstreams: h.Node.Nameservers(),
		ResolvConf: h.Node.RecursiveResolvConf(), Observe: h.dnsNames.Observe, Networks: h.DNSNetworks(),
	}
	if !h.Master.HasOtherNetwork() { // otherwise, no component updates the names
		server.Allows = h.resolvable.Allows
	}
	return server, nil
}

// idling returns the component that accepts connections to idle services and holds them until the
// services' workloads are ready, unless enableUnidling is false.
func (h *Host) idling() (component.Component, error) {
	connection, err := pki.ReadKubeconfig(h.Credentials.IdlingKubeconfig)
	if err != nil {
		return nil, err
	}
	connection.QPS = -1 // the component limits its requests for each project
	client, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	policed := h.isolation()
	if h.Master.HasOtherNetwork() {
		// The network plugin might enforce policies that a connection through the host would
		// bypass, so treat every connection as restricted.
		policed = func(context.Context, netip.Addr, netip.Addr) (bool, error) { return true, nil }
	}
	enabled := h.Node.EnableUnidling
	return &idle.Proxy{
		Client: client, Table: h.IdleTable(), IPv6: h.Master.DualStack().Enabled(), Host: h.Node.NodeName, Policed: policed, Disabled: enabled != nil && !*enabled,
	}, nil
}

// isolation returns a function that reports whether policies can restrict packets from a pod to an
// address. Both addresses must be of the same IP family.
func (h *Host) isolation() func(ctx context.Context, from, to netip.Addr) (bool, error) {
	first, second := policy.Isolation(h.PolicyTable(), h.ClusterNetworks()), policy.Isolation(h.PolicyTable(), h.SecondNetworks())
	return func(ctx context.Context, from, to netip.Addr) (bool, error) {
		if ipfamily.Of(from) == ipfamily.IPv6 {
			return second(ctx, from, to)
		}
		return first(ctx, from, to)
	}
}
