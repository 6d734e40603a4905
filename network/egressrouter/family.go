package egressrouter

import (
	"net"
	"net/netip"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/macvlan"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// tableFamily returns the family of nftables tables.
func tableFamily(f ipfamily.Family) nftables.TableFamily {
	return [...]nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6}[f]
}

// natFamily returns the family's number in NAT rules.
func natFamily(f ipfamily.Family) uint32 { return [...]uint32{unix.NFPROTO_IPV4, unix.NFPROTO_IPV6}[f] }

// controlProtocol returns the protocol number of ICMP or ICMPv6, depending on the family.
func controlProtocol(f ipfamily.Family) byte {
	return [...]byte{unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6}[f]
}

// outside returns a suffix for Go's network names, such as 4 for tcp4. The suffix selects the IP
// families in which the pod has an address outside the cluster. It is empty if the pod has
// addresses in both families. The proxies connect only in these families: in another family, their
// connections would have the node's address.
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

// suffix returns the suffix of Go's network names for the IP families of a device's addresses. It
// ignores IPv6 link-local addresses.
func suffix(addresses []net.Addr) string {
	has := map[ipfamily.Family]bool{}
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil && !isLinkLocal6(prefix.Addr()) {
			has[ipfamily.Of(prefix.Addr())] = true
		}
	}
	switch {
	case has[ipfamily.IPv4] && has[ipfamily.IPv6]:
		return ""
	case has[ipfamily.IPv6]:
		return "6"
	}
	return "4"
}
