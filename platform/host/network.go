package host

import (
	"context"
	"fmt"
	"net/netip"

	networkclient "github.com/openshift/client-go/network/clientset/versioned"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/internal/netnamespace"
	"github.com/slipway-platform/slipway/network/agent"
	"github.com/slipway-platform/slipway/network/policy"
	"github.com/slipway-platform/slipway/network/status"
	"github.com/slipway-platform/slipway/node/sandbox"
	"github.com/slipway-platform/slipway/pki"
)

// NetworkClients returns clients that use a kubeconfig's credentials.
func NetworkClients(kubeconfig string) (kubernetes.Interface, networkclient.Interface, error) {
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
		return nil, nil, fmt.Errorf("create network client: %w", err)
	}
	return client, network, nil
}

// NetworkStatus returns the settings and clients for reading the state of this host's network.
func (h *Host) NetworkStatus() (*status.Host, error) {
	if h.Master.HasOtherNetwork() {
		return nil, fmt.Errorf("this host's network belongs to another network plugin (networkPluginName: %s); use the plugin's own commands", h.Master.NetworkConfig.NetworkPluginName)
	}
	kubeconfig := h.AdminKubeconfig()
	if h.Joined() {
		kubeconfig = h.Member().Files().AgentKubeconfig
	}
	client, network, err := NetworkClients(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%w; start the host with: slipway up", err)
	}
	return &status.Host{
		Node: h.Node.NodeName, Client: client, Network: network, Transport: h.Node.Slipway.PodTransport, VXLANDevice: h.Node.Slipway.VXLANDevice,
		PolicyTable: h.PolicyTable(), Networks: h.ClusterNetworks(), LeaseDir: agent.LeaseDir(h.CNIStateDir()),
	}, nil
}

// ClusterNetworks returns the IPv4 pod and service networks.
func (h *Host) ClusterNetworks() policy.Networks {
	return policy.Networks{Pods: h.Master.DualStack().Prefixes4(), Services: h.Master.ServiceNetwork(), Tunnel: h.Node.Slipway.VXLANDevice, Bridge: h.Node.Slipway.Bridge}
}

// SecondNetworks returns the IPv6 pod and service networks, if any.
func (h *Host) SecondNetworks() policy.Networks {
	networks := h.Master.DualStack()
	if !networks.Enabled() {
		return policy.Networks{}
	}
	return policy.Networks{Pods: []netip.Prefix{networks.IPv6.Prefix}, Services: h.Master.SecondServiceNetwork(), Tunnel: h.Node.Slipway.VXLANDevice, Bridge: h.Node.Slipway.Bridge}
}

// DNSNetworks returns the networks whose addresses can have names in the cluster's DNS. It returns
// nil if another network plugin provides the pods' addresses.
func (h *Host) DNSNetworks() (all []netip.Prefix) {
	if h.Master.HasOtherNetwork() {
		return nil
	}
	for _, networks := range []policy.Networks{h.ClusterNetworks(), h.SecondNetworks()} {
		if len(networks.Pods) > 0 {
			all = append(append(all, networks.Pods...), networks.Services)
		}
	}
	return all
}

// PodNetwork returns the network namespace of a pod on this host.
func (h *Host) PodNetwork(ctx context.Context, namespace, name string) (*netnamespace.Namespace, error) {
	path, err := sandbox.Network(ctx, h.ContainerdSocket(), namespace, name)
	if err != nil {
		return nil, err
	}
	return netnamespace.Open(path)
}

// CNIStateDir returns the directory of the CNI plugin's records, such as leased addresses.
func (h *Host) CNIStateDir() string { return h.Path("cni", "state") }

// CNIConfDir returns the directory of the CNI configuration.
func (h *Host) CNIConfDir() string { return h.Path("cni", "conf") }
