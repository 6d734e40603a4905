package dualstack

import (
	"net/netip"
	"testing"
)

// FuzzSubnet verifies that hosts have different IPv6 subnets within the IPv6 network, for any
// configured networks.
func FuzzSubnet(f *testing.F) {
	f.Add("10.128.0.0/14", 9, "10.64.0.0/16", 8, "fd01::/48", 64, "10.128.2.0/23", "10.64.3.0/24")
	f.Add("0.0.0.0/0", 2, "10.64.0.0/30", 40, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00/120", 1, "255.255.255.252/30", "0.0.0.0/30")
	f.Add("10.128.0.0/14", -1, "x", 1<<20, "::/0", 128, "10.128.0.0/33", "10.128.0.0/32")
	f.Fuzz(func(t *testing.T, first string, firstBits int, second string, secondBits int, ipv6 string, ipv6Bits int, one, two string) {
		var networks Networks
		for _, n := range []struct {
			text string
			bits int
		}{{first, firstBits}, {second, secondBits}, {ipv6, ipv6Bits}} {
			prefix, err := netip.ParsePrefix(n.text)
			network := Network{prefix, n.bits}
			switch {
			case err != nil || !network.Valid():
			case prefix.Addr().Is4():
				networks.IPv4 = append(networks.IPv4, network)
			default:
				networks.IPv6 = network
			}
		}
		a, errA := netip.ParsePrefix(one)
		b, errB := netip.ParsePrefix(two)
		if errA != nil || errB != nil || len(networks.IPv4) == 2 && networks.IPv4[0].Overlaps(networks.IPv4[1].Prefix) {
			return
		}
		subnetA, subnetB := networks.Subnet(a.Masked()), networks.Subnet(b.Masked())
		for _, subnet := range []netip.Prefix{subnetA, subnetB} {
			if subnet.IsValid() && !networks.IPv6.Contains(subnet.Addr()) {
				t.Errorf("%+v: the subnet %s is not part of the IPv6 network", networks, subnet)
			}
		}
		if subnetA.IsValid() && subnetA == subnetB && a.Masked() != b.Masked() {
			t.Errorf("%+v: %s and %s have the subnet %s", networks, a, b, subnetA)
		}
	})
}
