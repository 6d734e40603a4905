package allocator

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	networkv1 "github.com/openshift/api/network/v1"

	"github.com/slipway-platform/slipway/network/egressip"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// host is a host with egressCIDRs, to which addresses are assigned automatically.
type host struct {
	name  string
	cidrs []netip.Prefix
	lost  bool
	// addresses contains the addresses assigned to the host.
	addresses []netip.Addr
}

// canHave reports whether a host is responding and one of its ranges contains an address.
func (h *host) canHave(address netip.Addr) bool {
	return !h.lost && h.includes(address)
}

func (h *host) includes(address netip.Addr) bool {
	return slices.ContainsFunc(h.cidrs, func(p netip.Prefix) bool { return p.Contains(address) })
}

func (h *host) remove(address netip.Addr) {
	h.addresses = slices.DeleteFunc(h.addresses, func(a netip.Addr) bool { return a == address })
}

// allocate returns the addresses of all hosts with egressCIDRs, keyed by host name.
//
// A host keeps its addresses as long as projects request them. If a host is lost, its addresses
// move to another host. If there is no other host, the lost host keeps its addresses. A requested
// address without a host is assigned to the host with the fewest addresses. Finally, addresses are
// moved to balance the hosts. After that, if two hosts can have the same address, their numbers of
// addresses differ by at most one. If no host responds, all hosts are considered alive, because the
// cause is probably on this host.
func allocate(subnets []*networkv1.HostSubnet, projects []*networkv1.NetNamespace, alive func(host string) bool) map[string][]netip.Addr {
	requested := requests(subnets, projects)
	hosts := automatic(subnets, requested, alive)
	for _, address := range requested {
		place(hosts, address)
	}
	for balance(hosts) {
	}
	result := map[string][]netip.Addr{}
	for _, h := range hosts {
		slices.SortFunc(h.addresses, netip.Addr.Compare)
		result[h.name] = h.addresses
	}
	return result
}

// requests returns the requested addresses, in order. It includes a project's address only if it is
// the project's single address in its IP family. It excludes addresses that belong to a node and
// addresses that an administrator has assigned.
func requests(subnets []*networkv1.HostSubnet, projects []*networkv1.NetNamespace) []netip.Addr {
	taken, requested := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, subnet := range subnets {
		for _, address := range egressip.HostAddresses(subnet) {
			taken[address] = true
		}
		if len(subnet.EgressCIDRs) > 0 || subnet.Annotations[automaticAnnotation] != "" {
			continue
		}
		for _, address := range egressip.Addresses(subnet.EgressIPs) {
			taken[address] = true
		}
	}
	for _, project := range projects {
		for _, family := range []ipfamily.Family{ipfamily.IPv4, ipfamily.IPv6} {
			if own := egressip.InFamily(project.EgressIPs, family); len(own) == 1 && !taken[own[0]] {
				requested[own[0]] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(requested), netip.Addr.Compare)
}

// automatic returns the hosts with egressCIDRs, sorted by name. Each host keeps those of its
// addresses that are requested. Each address is assigned to at most one host.
func automatic(subnets []*networkv1.HostSubnet, requested []netip.Addr, alive func(host string) bool) []*host {
	var hosts []*host
	allLost := true
	held := map[netip.Addr]bool{}
	for _, subnet := range slices.SortedFunc(slices.Values(subnets), func(a, b *networkv1.HostSubnet) int { return strings.Compare(a.Name, b.Name) }) {
		h := &host{name: subnet.Name, lost: !alive(subnet.Name)}
		for _, text := range subnet.EgressCIDRs {
			if cidr, err := netip.ParsePrefix(string(text)); err == nil {
				h.cidrs = append(h.cidrs, cidr)
			}
		}
		if len(h.cidrs) == 0 {
			continue
		}
		for _, address := range egressip.Addresses(subnet.EgressIPs) {
			if !held[address] && h.includes(address) && slices.Contains(requested, address) {
				held[address] = true
				h.addresses = append(h.addresses, address)
			}
		}
		allLost = allLost && h.lost
		hosts = append(hosts, h)
	}
	for _, h := range hosts {
		h.lost = h.lost && !allLost
	}
	return hosts
}

// place assigns an address to a host that can have it, unless a live host already has it.
func place(hosts []*host, address netip.Addr) {
	var best, owner *host
	for _, h := range hosts {
		if slices.Contains(h.addresses, address) {
			owner = h
		}
		if h.canHave(address) && (best == nil || len(h.addresses) < len(best.addresses)) {
			best = h
		}
	}
	if best == nil || owner != nil && !owner.lost {
		return
	}
	if owner != nil {
		owner.remove(address)
	}
	best.addresses = append(best.addresses, address)
}

// balance moves one address from a host to another host that has at least two fewer addresses. It
// reports whether it moved an address.
func balance(hosts []*host) bool {
	for _, from := range hosts {
		for _, to := range hosts {
			if from.lost || len(from.addresses) < len(to.addresses)+2 {
				continue
			}
			// Move the last address, so that older addresses stay on their host.
			for _, address := range slices.Backward(from.addresses) {
				if to.canHave(address) {
					from.remove(address)
					to.addresses = append(to.addresses, address)
					return true
				}
			}
		}
	}
	return false
}
