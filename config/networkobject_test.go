package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	networkv1 "github.com/openshift/api/network/v1"
)

func TestNetworkObjectFollowsConfiguration(t *testing.T) {
	port := func(value uint32) *uint32 { return &value }
	for name, tt := range map[string]struct {
		keys string
		want networkv1.ClusterNetwork
	}{
		"IPv4": {
			"{clusterNetworks: [{cidr: 10.32.0.0/14, hostSubnetLength: 8}], serviceNetworkCIDR: 172.20.0.0/16, vxlanPort: 4790, networkPluginName: redhat/openshift-ovs-multitenant}",
			networkv1.ClusterNetwork{
				Network: "10.32.0.0/14", HostSubnetLength: 8, ServiceNetwork: "172.20.0.0/16", PluginName: "redhat/openshift-ovs-multitenant",
				VXLANPort: port(4790), ClusterNetworks: []networkv1.ClusterNetworkEntry{{CIDR: "10.32.0.0/14", HostSubnetLength: 8}},
			},
		},
		"both families": {
			"{clusterNetworks: [{cidr: 10.32.0.0/14, hostSubnetLength: 8}, {cidr: 'fd01::/48', hostSubnetLength: 64}], serviceNetworkCIDR: '172.20.0.0/16,fd02::/112', networkPluginName: redhat/openshift-ovs-subnet}",
			networkv1.ClusterNetwork{
				Network: "10.32.0.0/14", HostSubnetLength: 8, ServiceNetwork: "172.20.0.0/16", PluginName: "redhat/openshift-ovs-subnet",
				VXLANPort:       port(4789),
				ClusterNetworks: []networkv1.ClusterNetworkEntry{{CIDR: "10.32.0.0/14", HostSubnetLength: 8}, {CIDR: "fd01::/48", HostSubnetLength: 64}},
			},
		},
	} {
		c, err := loadText(t, "MasterConfig", "networkConfig: "+tt.keys)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, c.Master.NetworkObject()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPublicHostsComeFromPublicAddresses(t *testing.T) {
	for keys, want := range map[string][]string{
		"oauthConfig: null": nil,
		// oauthConfig has the same address by default.
		"masterPublicURL: 'https://lb.example.com:8443'":                                                    {"lb.example.com", "lb.example.com"},
		"oauthConfig: {masterPublicURL: 'https://login.example.com/'}":                                      {"login.example.com"},
		"masterPublicURL: 'https://192.0.2.1'\noauthConfig: {masterPublicURL: 'https://[2001:db8::1]:443'}": {"192.0.2.1", "2001:db8::1"},
	} {
		c, err := loadText(t, "MasterConfig", keys)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.Master.PublicHosts()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", keys, diff)
		}
	}
}
