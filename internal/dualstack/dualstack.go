// Package dualstack derives the IPv6 addresses of the pod network from the IPv4 addresses.
//
// The node whose IPv4 subnet is number n of the IPv4 network has subnet number n of the IPv6
// network, and the pod with address number m in one of them has address number m in the other. So
// no component stores or allocates IPv6 addresses, and a cluster can get IPv6 at any time:
// Kubernetes does not let a Node with a subnet get a second one.
package dualstack

import (
	"math/big"
	"net/netip"
)

// Networks are the two networks of pods. The zero value is a network without IPv6. The IPv6 network
// has at least as many subnets, and addresses in each, as the IPv4 network.
type Networks struct {
	// IPv4 and IPv6 are the addresses of all pods.
	IPv4, IPv6 netip.Prefix
	// HostBits4 and HostBits6 are the numbers of address bits that each node gets.
	HostBits4, HostBits6 int
}

// Enabled reports whether pods have IPv6 addresses.
func (n Networks) Enabled() bool { return n.IPv6.IsValid() }

// Subnet returns the IPv6 subnet of the node with an IPv4 subnet. It is invalid without IPv6, and
// for a subnet that does not belong to a node.
func (n Networks) Subnet(subnet netip.Prefix) netip.Prefix {
	if !n.Enabled() || !subnet.Addr().Is4() || subnet.Bits() != 32-n.HostBits4 || !n.IPv4.Contains(subnet.Addr()) {
		return netip.Prefix{}
	}
	number := new(big.Int).Rsh(offset(n.IPv4, subnet.Addr()), uint(n.HostBits4))
	return netip.PrefixFrom(at(n.IPv6, number.Lsh(number, uint(n.HostBits6))), 128-n.HostBits6)
}

// Address returns the address of second that has the number of an address of first.
func Address(first, second netip.Prefix, address netip.Addr) netip.Addr {
	return at(second, offset(first, address))
}

// offset returns the number of an address in a network.
func offset(network netip.Prefix, address netip.Addr) *big.Int {
	return new(big.Int).Sub(number(address), number(network.Masked().Addr()))
}

// at returns the address of an IPv6 network with a number.
func at(network netip.Prefix, offset *big.Int) netip.Addr {
	var octets [16]byte
	new(big.Int).Add(number(network.Masked().Addr()), offset).FillBytes(octets[:])
	return netip.AddrFrom16(octets)
}

func number(address netip.Addr) *big.Int { return new(big.Int).SetBytes(address.AsSlice()) }
