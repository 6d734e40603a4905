package platform

import (
	"context"
	"fmt"
	"net/netip"

	networkclient "github.com/openshift/client-go/network/clientset/versioned"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/admission/unenforced"
	networkapi "github.com/slipway-platform/slipway/apigroup/network"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/controller/ingressip"
	networkcontroller "github.com/slipway-platform/slipway/controller/network"
	"github.com/slipway-platform/slipway/controller/unidle"
	"github.com/slipway-platform/slipway/internal/netnamespace"
	"github.com/slipway-platform/slipway/network/agent"
	"github.com/slipway-platform/slipway/network/bandwidth"
	"github.com/slipway-platform/slipway/network/dns"
	"github.com/slipway-platform/slipway/network/egressip/allocator"
	"github.com/slipway-platform/slipway/network/idle"
	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/policy"
	"github.com/slipway-platform/slipway/network/status"
	"github.com/slipway-platform/slipway/node/sandbox"
	"github.com/slipway-platform/slipway/pki"
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
		}, nil
	}
	client, network, err := h.agentClients()
	if err != nil {
		return nil, err
	}
	programs, err := h.programs()
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
		ConfDir:      h.cniConfDir(),
		BinDir:       programs.Dir,
		StateDir:     h.cniStateDir(),
		PolicySocket: h.policySocket(),
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
	return networkClients(h.credentials.AgentKubeconfig)
}

// networkClients returns clients that use a kubeconfig's credentials.
func networkClients(kubeconfig string) (kubernetes.Interface, networkclient.Interface, error) {
	client, err := pki.NewClient(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config, err := pki.ReadKubeconfig(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	network, err := networkclient.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("create client of networks: %w", err)
	}
	return client, network, nil
}

// NetworkStatus returns what reads the state of this host's network.
func (h *Host) NetworkStatus() (*status.Host, error) {
	if h.Master.HasOtherNetwork() {
		return nil, fmt.Errorf("this host's network belongs to another network plugin (networkPluginName: %s); use the plugin's own commands", h.Master.NetworkConfig.NetworkPluginName)
	}
	kubeconfig := h.AdminKubeconfig()
	if h.Joined() {
		kubeconfig = h.member().Files().AgentKubeconfig
	}
	client, network, err := networkClients(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%w; start the host with: slipway up", err)
	}
	return &status.Host{
		Node: h.Node.NodeName, Client: client, Network: network, Transport: h.Node.Slipway.PodTransport, VXLANDevice: h.Node.Slipway.VXLANDevice,
		PolicyTable: h.PolicyTable(), Networks: h.clusterNetworks(), LeaseDir: agent.LeaseDir(h.cniStateDir()),
	}, nil
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
		NodeName: h.Node.NodeName, Client: client, Network: network, Table: h.PolicyTable(), Networks: h.clusterNetworks(),
		DualStack: h.Master.DualStack(), Second: h.secondNetworks(),
		Socket: h.policySocket(), LeaseDir: agent.LeaseDir(h.cniStateDir()), Names: h.dnsNames, Resolver: h.Node.DNSAddress(),
		Tunnel: h.tunnel, CheckInterval: h.Node.SyncPeriod(), Direct: h.Node.Slipway.PodConnections == config.PodConnectionsDirect,
	}, nil
}

// bandwidth returns the component that limits the bandwidth of the node's pods.
func (h *Host) bandwidth() (component.Component, error) {
	if h.Master.HasOtherNetwork() {
		return component.Disabled("bandwidth"), nil
	}
	client, err := pki.NewClient(h.credentials.AgentKubeconfig)
	if err != nil {
		return nil, err
	}
	return &bandwidth.Limiter{
		NodeName: h.Node.NodeName, Client: client, Bridge: h.Node.Slipway.Bridge, LeaseDir: agent.LeaseDir(h.cniStateDir()),
		DualStack: h.Master.DualStack(),
	}, nil
}

// podNetwork returns the controllers for the pod network objects.
func (h *Host) podNetwork() (component.Component, error) {
	client, err := networkclient.NewForConfig(h.deps.Config)
	if err != nil {
		return nil, fmt.Errorf("create client of networks: %w", err)
	}
	return &networkcontroller.Controllers{Deps: h.deps, Client: client, Network: h.Master.NetworkObject(), DualStack: h.Master.DualStack()}, nil
}

// egressIPs returns the controller that assigns egress IPs to hosts with egressCIDRs.
func (h *Host) egressIPs() (component.Component, error) {
	if h.Master.HasOtherNetwork() {
		return component.Disabled("egress-ips"), nil
	}
	client, err := networkclient.NewForConfig(h.deps.Config)
	if err != nil {
		return nil, fmt.Errorf("create client of networks: %w", err)
	}
	return &allocator.Allocator{Client: client}, nil
}

// networkFeatures returns the pod network's API group, and warnings about policies that the network
// plugin does not enforce.
func (h *Host) networkFeatures() []apiserver.Feature {
	group := networkapi.Feature(h.Master.NetworkObject(), h.Master.DualStack())
	return append([]apiserver.Feature{group}, unenforced.Network(h.Master.NetworkConfig.NetworkPluginName)...)
}

// clusterNetworks returns the IPv4 pod and service networks.
func (h *Host) clusterNetworks() policy.Networks {
	return policy.Networks{Pods: h.Master.DualStack().Prefixes4(), Services: h.Master.ServiceNetwork(), Tunnel: h.Node.Slipway.VXLANDevice, Bridge: h.Node.Slipway.Bridge}
}

// secondNetworks returns the IPv6 pod and service networks, if any.
func (h *Host) secondNetworks() policy.Networks {
	networks := h.Master.DualStack()
	if !networks.Enabled() {
		return policy.Networks{}
	}
	return policy.Networks{Pods: []netip.Prefix{networks.IPv6.Prefix}, Services: h.Master.SecondServiceNetwork(), Tunnel: h.Node.Slipway.VXLANDevice, Bridge: h.Node.Slipway.Bridge}
}

// PodNetwork returns the network namespace of a pod on this host.
func (h *Host) PodNetwork(ctx context.Context, namespace, name string) (*netnamespace.Namespace, error) {
	path, err := sandbox.Network(ctx, h.ContainerdSocket(), namespace, name)
	if err != nil {
		return nil, err
	}
	return netnamespace.Open(path)
}

func (h *Host) cniStateDir() string { return h.path("cni", "state") }

func (h *Host) cniConfDir() string { return h.path("cni", "conf") }

// dns returns the component that runs the pods' DNS server.
func (h *Host) dns() (component.Component, error) {
	client, err := pki.ReadKubeconfig(h.credentials.DNSKubeconfig)
	if err != nil {
		return nil, err
	}
	return &dns.Server{
		Address: h.Node.DNSAddress(), Domain: h.Node.DNSDomain, Config: client, Upstreams: h.Node.Nameservers(),
		ResolvConf: h.Node.RecursiveResolvConf(), Observe: h.dnsNames.Observe,
	}, nil
}

// masterDNS returns the component that runs the DNS server for clients outside pods, if dnsConfig
// is set.
func (h *Host) masterDNS() (component.Component, error) {
	settings := h.Master.DNSConfig
	if settings == nil {
		return component.Disabled("master-dns"), nil
	}
	client, err := pki.ReadKubeconfig(h.credentials.DNSKubeconfig)
	if err != nil {
		return nil, err
	}
	client.Host = h.apiURL("127.0.0.1") // the kubeconfig belongs to the node
	return &dns.Server{
		Part: "master-dns", Address: settings.BindAddress, OnlyIPv4: settings.BindNetwork == "tcp4", Domain: h.Node.DNSDomain, Config: client,
		ClusterOnly: !settings.AllowRecursiveQueries, OldSRV: true,
	}, nil
}

// idling returns the component that accepts connections to idle services and holds them until the
// services' workloads are ready, unless enableUnidling is false.
func (h *Host) idling() (component.Component, error) {
	client, err := pki.NewClient(h.credentials.IdlingKubeconfig)
	if err != nil {
		return nil, err
	}
	policed := h.isolation()
	if h.Master.HasOtherNetwork() {
		// The network plugin might enforce policies that a connection through the host would
		// bypass.
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
	first, second := policy.Isolation(h.PolicyTable(), h.clusterNetworks()), policy.Isolation(h.PolicyTable(), h.secondNetworks())
	return func(ctx context.Context, from, to netip.Addr) (bool, error) {
		if ipfamily.Of(from) == ipfamily.IPv6 {
			return second(ctx, from, to)
		}
		return first(ctx, from, to)
	}
}

// unidling returns the component that scales up the workloads of idle services when a node reports
// a connection.
func (h *Host) unidling() (component.Component, error) {
	return &unidle.Services{Deps: h.deps}, nil
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
