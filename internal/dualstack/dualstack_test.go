package dualstack

import (
	"net/netip"
	"testing"
)

func TestSubnetsAndAddressesHaveSameNumber(t *testing.T) {
	networks := Networks{
		IPv4: []Network{
			{netip.MustParsePrefix("10.128.0.0/14"), 9}, {netip.MustParsePrefix("10.64.0.0/24"), 6}, {netip.MustParsePrefix("10.65.0.0/16"), 8},
		},
		IPv6: Network{netip.MustParsePrefix("fd01:0:0:100::/56"), 60},
	}
	for subnet, want := range map[string]string{
		"10.128.0.0/23":   "fd01:0:0:100::/68",
		"10.128.2.0/23":   "fd01:0:0:100:1000::/68",
		"10.131.254.0/23": "fd01:0:0:11f:f000::/68",
		// The first network has 512 subnets, and the second network has 4 subnets.
		"10.64.0.0/26":   "fd01:0:0:120::/68",
		"10.64.0.192/26": "fd01:0:0:120:3000::/68",
		"10.65.0.0/24":   "fd01:0:0:120:4000::/68",
		"10.65.255.0/24": "fd01:0:0:130:3000::/68",
		// These are not node subnets.
		"10.128.0.0/24": "invalid Prefix",
		"10.64.0.0/24":  "invalid Prefix",
		"10.132.0.0/23": "invalid Prefix",
		"fd01::/68":     "invalid Prefix",
	} {
		if got := networks.Subnet(netip.MustParsePrefix(subnet)).String(); got != want {
			t.Errorf("%s: got %s, want %s", subnet, got, want)
		}
	}
	second := networks.Subnet(netip.MustParsePrefix("10.128.2.0/23"))
	got := Address(netip.MustParsePrefix("10.128.2.0/23"), second, netip.MustParseAddr("10.128.3.7"))
	if want := netip.MustParseAddr("fd01:0:0:100:1000::107"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if (Networks{IPv4: networks.IPv4}).Subnet(netip.MustParsePrefix("10.128.2.0/23")).IsValid() {
		t.Error("a network without IPv6 has an IPv6 subnet")
	}
}

func TestSubnetOfPodDependsOnNetwork(t *testing.T) {
	networks := Networks{IPv4: []Network{{netip.MustParsePrefix("10.128.0.0/14"), 9}, {netip.MustParsePrefix("10.64.0.0/24"), 6}}}
	for pod, want := range map[string]string{
		"10.128.3.7": "10.128.2.0/23", "10.64.0.70": "10.64.0.64/26", "10.65.0.1": "invalid Prefix", "fd01::2": "invalid Prefix",
	} {
		if got := networks.SubnetOf(netip.MustParseAddr(pod)).String(); got != want {
			t.Errorf("%s: got %s, want %s", pod, got, want)
		}
	}
}
