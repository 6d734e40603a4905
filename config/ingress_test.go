package config

import (
	"testing"
)

func TestIngressNetwork(t *testing.T) {
	const none = "invalid Prefix"
	tests := []struct {
		name, network, want string
	}{
		{"default", "", "172.29.0.0/16"},
		{"own network", "ingressIPNetworkCIDR: 192.0.2.0/24", "192.0.2.0/24"},
		{"turned off", "ingressIPNetworkCIDR: 0.0.0.0/32", none},
		{"default overlaps pods", "clusterNetworkCIDR: 172.28.0.0/14, hostSubnetLength: 9, " +
			"serviceNetworkCIDR: 10.0.0.0/16", none},
		{"overlaps services", "ingressIPNetworkCIDR: 172.30.8.0/24",
			"which overlaps the cluster's network 172.30.0.0/16"},
		{"overlaps pods", "ingressIPNetworkCIDR: 10.129.0.0/24",
			"which overlaps the cluster's network 10.128.0.0/14"},
		{"too small", "ingressIPNetworkCIDR: 192.0.2.0/31",
			"must be between a /8 and a /30, or 0.0.0.0/32 for none"},
		{"not masked", "ingressIPNetworkCIDR: 192.0.2.1/24", "write 192.0.2.0/24"},
		{"cloud provider assigns addresses",
			"}, kubernetesMasterConfig: {controllerArguments: {cloud-provider: [external]}", none},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := loadNetwork(t, tt.network, tt.want)
			if c == nil {
				return
			}
			if got := c.Master.IngressNetwork().String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
