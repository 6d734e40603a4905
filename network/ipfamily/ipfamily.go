// Package ipfamily provides the parts of rules that differ between IPv4 and IPv6: nftables keywords
// and kernel constants.
package ipfamily

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"sigs.k8s.io/knftables"
)

// Family is an IP family.
type Family int

// IPv4 is the zero value.
const (
	IPv4 Family = iota
	IPv6
)

// Of returns an address's family. The family of an invalid address is IPv4.
func Of(address netip.Addr) Family {
	if address.Is6() {
		return IPv6
	}
	return IPv4
}

// String returns the family's name.
func (f Family) String() string { return [...]string{"IPv4", "IPv6"}[f] }

// Table returns the nftables family of tables for this IP family.
func (f Family) Table() knftables.Family {
	return [...]knftables.Family{knftables.IPv4Family, knftables.IPv6Family}[f]
}

// Header returns the keyword for header fields, such as `ip` in `ip saddr`.
func (f Family) Header() string { return [...]string{"ip", "ip6"}[f] }

// Type returns the nftables type of addresses in sets.
func (f Family) Type() string { return [...]string{"ipv4_addr", "ipv6_addr"}[f] }

// Loopback returns the loopback addresses.
func (f Family) Loopback() string { return [...]string{"127.0.0.0/8", "::1/128"}[f] }

// Redirect returns the nftables match for ICMP redirects, which direct a sender to another route.
func (f Family) Redirect() string {
	return [...]string{"icmp type redirect", "icmpv6 type nd-redirect"}[f]
}

// Everything returns the network that contains all addresses.
func (f Family) Everything() string { return [...]string{"0.0.0.0/0", "::/0"}[f] }

// Metadata returns the networks that contain clouds' metadata services: link-local addresses, and
// the addresses that some clouds use instead.
func (f Family) Metadata() string {
	return [...]string{
		"169.254.0.0/16, 100.100.100.200, 168.63.129.16, 192.0.0.192",
		"fe80::/10, fd00:ec2::254, fd20:ce::254",
	}[f]
}

// Unspecified returns the unspecified address, which represents all addresses of a host.
func (f Family) Unspecified() netip.Addr {
	return [...]netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}[f]
}

// Netlink returns the kernel's number for the family.
func (f Family) Netlink() int { return [...]int{netlink.FAMILY_V4, netlink.FAMILY_V6}[f] }
