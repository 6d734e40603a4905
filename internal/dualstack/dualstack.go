// Package dualstack describes the pod networks, and derives pods' IPv6 addresses from their IPv4
// addresses.
//
// There can be several IPv4 networks. Their subnets are numbered across all networks, in the order
// of the networks. The node with IPv4 subnet number n has subnet number n in the IPv6 network.
// Likewise, the pod with address number m in one of these subnets has address number m in the other
// subnet. Therefore, no component allocates or depends on stored IPv6 addresses, and a cluster can
// add IPv6 at any time. If components read the subnets from Nodes instead, adding IPv6 later would
// be impossible: Kubernetes does not allow a second subnet for a Node that has one.
package dualstack

import (
	"math/big"
	"net/netip"
)

// HostAnnotation is the annotation of a node's HostSubnet that contains the node's IPv6 address.
// The hostIP field contains the node's IPv4 address.
const HostAnnotation = "slipway.openshift.io/host-ipv6"

// Networks contains the pod networks. Without an IPv6 network, pods have only IPv4 addresses. The
// IPv6 network has at least as many subnets as all IPv4 networks together, and at least as many
// addresses in each subnet.
type Networks struct {
	// IPv4 lists the IPv4 networks in the order in which nodes get subnets.
	IPv4 []Network
	// IPv6 is the IPv6 network. It is optional.
	IPv6 Network
}

// Network is an address range of pods.
type Network struct {
	netip.Prefix
	// HostBits is the number of address bits in each node's subnet.
	HostBits int
}

// Valid reports whether the network has at least one subnet.
func (n Network) Valid() bool {
	return n.IsValid() && n.HostBits >= 0 && n.HostBits <= n.Addr().BitLen()-n.Bits()
}

// Subnets returns the number of subnets in the network.
func (n Network) Subnets() *big.Int {
	return new(big.Int).Lsh(big.NewInt(1), uint(max(0, n.Addr().BitLen()-n.Bits()-n.HostBits)))
}

// Enabled reports whether pods have IPv6 addresses.
func (n Networks) Enabled() bool { return n.IPv6.IsValid() }

// Prefixes4 returns the address ranges of the IPv4 networks.
func (n Networks) Prefixes4() (prefixes []netip.Prefix) {
	for _, network := range n.IPv4 {
		prefixes = append(prefixes, network.Masked())
	}
	return prefixes
}

// Prefixes returns the address ranges of all networks.
func (n Networks) Prefixes() []netip.Prefix {
	if n.Enabled() {
		return append(n.Prefixes4(), n.IPv6.Masked())
	}
	return n.Prefixes4()
}

// Subnet returns the IPv6 subnet of the node with the given IPv4 subnet. It returns an invalid
// prefix if IPv6 is disabled, the IPv4 subnet cannot be a node's subnet, or the IPv6 network has
// too few subnets.
func (n Networks) Subnet(subnet netip.Prefix) netip.Prefix {
	if !n.Enabled() {
		return netip.Prefix{}
	}
	number := new(big.Int)
	for _, network := range n.IPv4 {
		if !network.Contains(subnet.Addr()) {
			number.Add(number, network.Subnets())
			continue
		}
		if subnet.Bits() != subnet.Addr().BitLen()-network.HostBits {
			return netip.Prefix{}
		}
		number.Add(number, new(big.Int).Rsh(offset(network.Prefix, subnet.Addr()), uint(network.HostBits)))
		if number.Cmp(n.IPv6.Subnets()) >= 0 {
			return netip.Prefix{}
		}
		return netip.PrefixFrom(at(n.IPv6.Prefix, number.Lsh(number, uint(n.IPv6.HostBits))), 128-n.IPv6.HostBits)
	}
	return netip.Prefix{}
}

// SubnetOf returns the IPv4 subnet that contains a pod's IPv4 address. It returns an invalid prefix
// if the address is not in a pod network.
func (n Networks) SubnetOf(pod netip.Addr) netip.Prefix {
	for _, network := range n.IPv4 {
		if network.Contains(pod) {
			return netip.PrefixFrom(pod, pod.BitLen()-network.HostBits).Masked()
		}
	}
	return netip.Prefix{}
}

// Address maps an address from the network first to the network second. Both addresses have the
// same offset from the beginning of their network.
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
