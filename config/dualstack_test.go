package config

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestDualStack(t *testing.T) {
	const (
		pods     = "clusterNetworks: [{cidr: 10.128.0.0/14, hostSubnetLength: 9}"
		dual     = pods + `, {cidr: "fd01::/48", hostSubnetLength: 64}]`
		services = "serviceNetworkCIDR: '172.30.0.0/16,fd02::/112'"
	)
	for _, tt := range []struct{ name, network, want string }{
		{"default", "", "[10.128.0.0/14] [172.30.0.0/16] invalid Prefix"},
		{"both families", dual + ", " + services, "[10.128.0.0/14 fd01::/48] [172.30.0.0/16 fd02::/112] fd01:0:0:1::/64"},
		{"several IPv4 networks", pods + ", {cidr: 10.1.0.0/16, hostSubnetLength: 9}]", "[10.128.0.0/14 10.1.0.0/16] [172.30.0.0/16] invalid Prefix"},
		{"IPv6 only", `clusterNetworks: [{cidr: "fd01::/48", hostSubnetLength: 64}], serviceNetworkCIDR: "fd02::/112"`,
			`networkConfig.clusterNetworks[0].cidr: is "fd01::/48", must be an IPv4 network; pods need IPv4 addresses, so list the IPv6 network second`},
		{"two IPv6 networks", dual[:len(dual)-1] + `, {cidr: "fd03::/48", hostSubnetLength: 64}], ` + services, `is "fd03::/48", but "fd01::/48" is also an IPv6 network; keep one of them`},
		{"no IPv6 services", dual, `add an IPv6 network for services, such as "172.30.0.0/16,fd02::/112"`},
		{"no IPv6 pods", services, "but clusterNetworks has no IPv6 network; add one, such as cidr fd01::/48 with hostSubnetLength 64"},
		{"two IPv4 networks of services", dual + ", serviceNetworkCIDR: '172.30.0.0/16,10.1.0.0/16'", "but the second network must be an IPv6 network"},
		{"IPv6 services first", dual + ", serviceNetworkCIDR: 'fd02::/112,172.30.0.0/16'", `is "fd02::/112", must be an IPv4 network`},
		{"three networks of services", dual + ", serviceNetworkCIDR: '172.30.0.0/16,fd02::/112,fd03::/112'", "must be an IPv4 network, or an IPv4 and an IPv6 network"},
		{"too many services", dual + ", serviceNetworkCIDR: '172.30.0.0/16,fd02::/107'", "must be between a /108 and a /124"},
		{"services overlap pods", dual + ", serviceNetworkCIDR: '172.30.0.0/16,fd01::/112'", "overlaps the cluster network fd01::/48"},
		{"too few bits for addresses", pods + `, {cidr: "fd01::/48", hostSubnetLength: 8}], ` + services, "hostSubnetLength: is 8, must be at least the hostSubnetLength of the IPv4 networks, 9"},
		{"no bits for hosts", pods + `, {cidr: "fd01::/64", hostSubnetLength: 64}], ` + services, "which has 1 subnets for hosts with hostSubnetLength 64; the IPv4 networks have 512"},
		{"too many bits", pods + `, {cidr: "fd01::/64", hostSubnetLength: 65}], ` + services, "is 65, must be between 3 and 64"},
		{"link-local addresses", pods + `, {cidr: "fe80::/48", hostSubnetLength: 64}], ` + services, "must be a network of unique local or global addresses"},
		{"not masked", pods + `, {cidr: "fd01::1/48", hostSubnetLength: 64}], ` + services, "write fd01::/48"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := loadNetwork(t, tt.network, tt.want)
			if c == nil {
				return
			}
			subnet := c.Master.DualStack().Subnet(netip.MustParsePrefix("10.128.2.0/23"))
			if got := fmt.Sprint(c.Master.PodNetworks(), c.Master.ServiceNetworks(), " ", subnet); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestMTUOfDualStack(t *testing.T) {
	dir := t.TempDir()
	write(t, MasterFile(dir), `{apiVersion: v1, kind: MasterConfig, networkConfig: {serviceNetworkCIDR: "172.30.0.0/16,fd02::/112", `+
		`clusterNetworks: [{cidr: 10.128.0.0/14, hostSubnetLength: 9}, {cidr: "fd01::/48", hostSubnetLength: 64}]}}`)
	write(t, NodeFile(dir), "{apiVersion: v1, kind: NodeConfig, networkConfig: {mtu: 1200}}")
	if _, err := Load(dir, ""); err == nil || !strings.Contains(err.Error(), "networkConfig.mtu: is 1200, but pods have IPv6 addresses, which need at least 1280") {
		t.Errorf("Load: %v", err)
	}
}
