package egressip

import (
	"slices"
	"testing"

	networkv1 "github.com/openshift/api/network/v1"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// FuzzAssign verifies, for arbitrary objects, which addresses a project gets. A project must never
// get an address of another project or of a node, or an address that no host has.
func FuzzAssign(f *testing.F) {
	f.Add("192.0.2.100", "192.0.2.101", "192.0.2.100", "192.0.2.1", "192.0.2.96/28", uint32(10), uint32(11), true)
	f.Add("192.0.2.100", "192.0.2.100", "192.0.2.1", "", "::/0", uint32(0), uint32(0), false)
	f.Add("2001:db8::6", "192.0.2.101", "2001:DB8::6", "192.0.2.1", "2001:db8::/64", uint32(10), uint32(11), true)
	f.Add("::ffff:192.0.2.100", "fe80::1%eth0", "192.0.2.100", "x", "192.0.2.96", uint32(10), uint32(10), true)
	f.Fuzz(func(t *testing.T, first, second, held, hostIP, cidr string, shopID, bankID uint32, isAlive bool) {
		one, two := host(1, held, second), host(2, second)
		one.HostIP, two.EgressCIDRs = hostIP, []networkv1.HostSubnetEgressCIDR{networkv1.HostSubnetEgressCIDR(cidr)}
		shop, bank := project("shop", shopID, first, second), project("bank", bankID, second)
		hosts, projects := []*networkv1.HostSubnet{one, two}, []*networkv1.NetNamespace{shop, bank}
		exits := Assign(hosts, projects, func(string) bool { return isAlive })
		for _, p := range projects {
			exit, exists := exits[p.Name]
			if !exists {
				t.Errorf("project %s has no exit, so its packets leave with any address", p.Name)
				continue
			}
			for number, path := range exit.Paths {
				family, address := ipfamily.Family(number), path.Address
				if !address.IsValid() {
					if exit.Problem == "" && len(InFamily(p.EgressIPs, family)) > 0 {
						t.Errorf("the packets of project %s are dropped without a reason", p.Name)
					}
					continue
				}
				if !slices.Contains(InFamily(p.EgressIPs, family), address) || address.String() == one.HostIP || address.String() == two.HostIP {
					t.Errorf("project %s has the address %s", p.Name, address)
				}
				owner := map[string]*networkv1.HostSubnet{"host1": one, "host2": two}[path.Host]
				if owner == nil || !slices.Contains(Addresses(owner.EgressIPs), address) {
					t.Errorf("host %q of project %s does not have the address %s", path.Host, p.Name, address)
				}
				if address == exits["shop"].Paths[family].Address && address == exits["bank"].Paths[family].Address {
					t.Errorf("both projects have the address %s", address)
				}
			}
		}
	})
}
