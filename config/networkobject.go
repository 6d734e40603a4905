package config

import networkv1 "github.com/openshift/api/network/v1"

// NetworkObject returns the content of the "default" ClusterNetwork. As in OpenShift 3.11, it
// contains the first pod network in both the old and the new form. It contains only one service
// network, because the type has a field for only one.
func (c *MasterConfig) NetworkObject() networkv1.ClusterNetwork {
	var entries []networkv1.ClusterNetworkEntry
	for _, entry := range c.NetworkConfig.ClusterNetworks {
		entries = append(entries, networkv1.ClusterNetworkEntry(entry))
	}
	return networkv1.ClusterNetwork{
		VXLANPort: &c.NetworkConfig.VXLANPort,
		Network:   entries[0].CIDR, HostSubnetLength: entries[0].HostSubnetLength, ServiceNetwork: c.ServiceNetwork().String(),
		PluginName: c.NetworkConfig.NetworkPluginName, ClusterNetworks: entries,
	}
}
