// Package ipfamily contains the differences between the rules for IPv4 and the rules for IPv6:
// words of nftables, and constants of the kernel.
package ipfamily

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"sigs.k8s.io/knftables"
)

// Family is a family of addresses.
type Family int

// The zero value is IPv4.
const (
	IPv4 Family = iota
	IPv6
)

// Of returns the family of an address. The family of an invalid address is IPv4.
func Of(address netip.Addr) Family {
	if address.Is6() {
		return IPv6
	}
	return IPv4
}

// Table returns the family of nftables tables.
func (f Family) Table() knftables.Family {
	return [...]knftables.Family{knftables.IPv4Family, knftables.IPv6Family}[f]
}

// Header returns the keyword for fields of the header, such as `ip` in `ip saddr`.
func (f Family) Header() string { return [...]string{"ip", "ip6"}[f] }

// Type returns the type of addresses in sets.
func (f Family) Type() string { return [...]string{"ipv4_addr", "ipv6_addr"}[f] }

// Loopback returns the addresses of the loopback device.
func (f Family) Loopback() string { return [...]string{"127.0.0.0/8", "::1/128"}[f] }

// Redirect returns the match of packets that tell a sender to use another route.
func (f Family) Redirect() string {
	return [...]string{"icmp type redirect", "icmpv6 type nd-redirect"}[f]
}

// Everything returns the network of all addresses.
func (f Family) Everything() string { return [...]string{"0.0.0.0/0", "::/0"}[f] }

// Unspecified returns the address that stands for all addresses of a host.
func (f Family) Unspecified() netip.Addr {
	return [...]netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}[f]
}

// Netlink returns the number of the family in the kernel.
func (f Family) Netlink() int { return [...]int{netlink.FAMILY_V4, netlink.FAMILY_V6}[f] }
