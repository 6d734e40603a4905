package egressrouter

import (
	"net"
	"net/netip"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/macvlan"
)

// family is an IP family.
type family int

// The zero value is IPv4.
const (
	ipv4 family = iota
	ipv6
)

// familyOf returns an address's family. The family of an invalid address is IPv4.
func familyOf(address netip.Addr) family {
	if address.Is6() {
		return ipv6
	}
	return ipv4
}

// String returns the family's name.
func (f family) String() string { return [...]string{"IPv4", "IPv6"}[f] }

// netlink returns the kernel's number for the family.
func (f family) netlink() int { return [...]int{netlink.FAMILY_V4, netlink.FAMILY_V6}[f] }

// table returns the nftables table family.
func (f family) table() nftables.TableFamily {
	return [...]nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6}[f]
}

// nat returns the family's number in NAT rules.
func (f family) nat() uint32 { return [...]uint32{unix.NFPROTO_IPV4, unix.NFPROTO_IPV6}[f] }

// icmp returns the number of the family's control protocol.
func (f family) icmp() byte { return [...]byte{unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6}[f] }

// outside returns the suffix of Go's network names, such as tcp4, for the families in which the pod
// has an address outside of the cluster. It is empty for both families. The proxies connect only in
// these families, because in another family, their connections would have the node's address.
func outside() string {
	device, err := net.InterfaceByName(macvlan.Device)
	if err != nil {
		return "4"
	}
	addresses, err := device.Addrs()
	if err != nil {
		return "4"
	}
	return suffix(addresses)
}

// suffix returns the suffix for a device's addresses.
func suffix(addresses []net.Addr) string {
	has := map[family]bool{}
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil && !isLinkLocal6(prefix.Addr()) {
			has[familyOf(prefix.Addr())] = true
		}
	}
	switch {
	case has[ipv4] && has[ipv6]:
		return ""
	case has[ipv6]:
		return "6"
	}
	return "4"
}
