package config

import (
	"strings"
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
		"two networks of IPv4": {
			"{clusterNetworks: [{cidr: 10.32.0.0/14, hostSubnetLength: 8}, {cidr: 10.64.0.0/16, hostSubnetLength: 9}], serviceNetworkCIDR: 172.20.0.0/16, networkPluginName: redhat/openshift-ovs-subnet}",
			networkv1.ClusterNetwork{
				Network: "10.32.0.0/14", HostSubnetLength: 8, ServiceNetwork: "172.20.0.0/16", PluginName: "redhat/openshift-ovs-subnet",
				VXLANPort:       port(4789),
				ClusterNetworks: []networkv1.ClusterNetworkEntry{{CIDR: "10.32.0.0/14", HostSubnetLength: 8}, {CIDR: "10.64.0.0/16", HostSubnetLength: 9}},
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

func TestSeveralPodNetworks(t *testing.T) {
	const first = "{cidr: 10.32.0.0/14, hostSubnetLength: 8}, "
	for _, tt := range []struct{ name, networks, services, problem string }{
		{"apart", first + "{cidr: 10.64.0.0/16, hostSubnetLength: 9}", "172.30.0.0/16", ""},
		{"equal", first + "{cidr: 10.32.0.0/14, hostSubnetLength: 8}", "172.30.0.0/16", `clusterNetworks[1].cidr: is "10.32.0.0/14", which overlaps the cluster network 10.32.0.0/14`},
		{"within the first", first + "{cidr: 10.33.0.0/16, hostSubnetLength: 8}", "172.30.0.0/16", `clusterNetworks[1].cidr: is "10.33.0.0/16", which overlaps the cluster network 10.32.0.0/14`},
		{"around the first", first + "{cidr: 10.0.0.0/8, hostSubnetLength: 8}", "172.30.0.0/16", `clusterNetworks[1].cidr: is "10.0.0.0/8", which overlaps the cluster network 10.32.0.0/14`},
		{"the services' network", first + "{cidr: 172.16.0.0/12, hostSubnetLength: 8}", "172.30.0.0/16", `serviceNetworkCIDR: is "172.30.0.0/16", which overlaps the cluster network 172.16.0.0/12`},
		{"too small", first + "{cidr: 10.64.0.0/24, hostSubnetLength: 9}", "172.30.0.0/16", "clusterNetworks[1].hostSubnetLength: is 9, must be between 3 and 8"},
		{
			"enough subnets of IPv6", first + "{cidr: 'fd01::/52', hostSubnetLength: 64}, {cidr: 10.64.0.0/16, hostSubnetLength: 8}", "172.30.0.0/16,fd02::/112", "",
		},
		{
			"too few subnets of IPv6", first + "{cidr: 'fd01::/54', hostSubnetLength: 64}, {cidr: 10.64.0.0/16, hostSubnetLength: 8}", "172.30.0.0/16,fd02::/112",
			"has 1024 subnets for hosts with hostSubnetLength 64; the IPv4 networks have 1280",
		},
	} {
		_, err := loadText(t, "MasterConfig", "networkConfig: {clusterNetworks: ["+tt.networks+"], serviceNetworkCIDR: '"+tt.services+"'}")
		if tt.problem == "" && err != nil || tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.problem)
		}
	}
}
