package config

import networkv1 "github.com/openshift/api/network/v1"

// NetworkObject returns the content of the ClusterNetwork "default". As in OpenShift 3.11, it
// contains the pod network in both the old and the new form. It contains only one service network,
// because the type has a field for only one.
func (c *MasterConfig) NetworkObject() networkv1.ClusterNetwork {
	pods, hostBits := c.ClusterNetwork()
	entry := networkv1.ClusterNetworkEntry{CIDR: pods.String(), HostSubnetLength: uint32(hostBits)}
	entries := []networkv1.ClusterNetworkEntry{entry}
	if networks := c.DualStack(); networks.Enabled() {
		entries = append(entries, networkv1.ClusterNetworkEntry{CIDR: networks.IPv6.String(), HostSubnetLength: uint32(networks.HostBits6)})
	}
	return networkv1.ClusterNetwork{
		VXLANPort: &c.NetworkConfig.VXLANPort,
		Network:   entry.CIDR, HostSubnetLength: entry.HostSubnetLength, ServiceNetwork: c.ServiceNetwork().String(),
		PluginName: c.NetworkConfig.NetworkPluginName, ClusterNetworks: entries,
	}
}
