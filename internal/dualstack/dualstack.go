// Package dualstack derives the pod network's IPv6 addresses from its IPv4 addresses.
//
// The node with subnet number n in the IPv4 network has subnet number n in the IPv6 network.
// Likewise, the pod with address number m in one of these subnets has address number m in the other
// subnet. Therefore, no component allocates or depends on stored IPv6 addresses, and a cluster can
// add IPv6 at any time. If components read the subnets from Nodes, this would be impossible,
// because Kubernetes does not allow a second subnet for a Node that already has one.
package dualstack

import (
	"math/big"
	"net/netip"
)

// Networks contains the two pod networks. The zero value is a network without IPv6. The IPv6
// network has at least as many subnets as the IPv4 network, and at least as many addresses in each
// subnet.
type Networks struct {
	// IPv4 and IPv6 are the address ranges of all pods.
	IPv4, IPv6 netip.Prefix
	// HostBits4 and HostBits6 are the numbers of address bits in each node's subnet.
	HostBits4, HostBits6 int
}

// Enabled reports whether pods have IPv6 addresses.
func (n Networks) Enabled() bool { return n.IPv6.IsValid() }

// Subnet returns the IPv6 subnet of the node with the given IPv4 subnet. It returns an invalid
// prefix if IPv6 is disabled, or if the IPv4 subnet cannot be a node's subnet.
func (n Networks) Subnet(subnet netip.Prefix) netip.Prefix {
	if !n.Enabled() || !subnet.Addr().Is4() || subnet.Bits() != 32-n.HostBits4 || !n.IPv4.Contains(subnet.Addr()) {
		return netip.Prefix{}
	}
	number := new(big.Int).Rsh(offset(n.IPv4, subnet.Addr()), uint(n.HostBits4))
	return netip.PrefixFrom(at(n.IPv6, number.Lsh(number, uint(n.HostBits6))), 128-n.HostBits6)
}

// Address returns the address that has the same number in second as address has in first.
func Address(first, second netip.Prefix, address netip.Addr) netip.Addr {
	return at(second, offset(first, address))
}

// offset returns an address's distance from the first address of a network.
func offset(network netip.Prefix, address netip.Addr) *big.Int {
	return new(big.Int).Sub(number(address), number(network.Masked().Addr()))
}

// at returns the address at the given offset in an IPv6 network.
func at(network netip.Prefix, offset *big.Int) netip.Addr {
	var octets [16]byte
	new(big.Int).Add(number(network.Masked().Addr()), offset).FillBytes(octets[:])
	return netip.AddrFrom16(octets)
}

func number(address netip.Addr) *big.Int { return new(big.Int).SetBytes(address.AsSlice()) }
