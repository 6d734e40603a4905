package outbound

import (
	"net/netip"
	"slices"
)

// specialNetworks returns networks that contain no public servers.
//
// Source: the IANA special-purpose address registries for IPv4 and IPv6, and the cloud providers'
// documentation.
func specialNetworks() []netip.Prefix {
	var networks []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8",          // this host
		"127.0.0.0/8",        // loopback
		"169.254.0.0/16",     // link-local, with the metadata service of most clouds
		"192.0.0.0/24",       // protocol assignments, with Oracle Cloud's metadata service
		"192.88.99.0/24",     // relays of 6to4
		"224.0.0.0/4",        // multicast
		"240.0.0.0/4",        // reserved, and broadcast
		"100.100.100.200/32", // Alibaba Cloud's metadata service
		"168.63.129.16/32",   // Azure's host agent, which has a public address
		"::/128",             // this host
		"::1/128",            // loopback
		"64:ff9b:1::/48",     // translation to IPv4 in a private network
		"100::/64",           // discard-only
		"fe80::/10",          // link-local
		"fec0::/10",          // site-local
		"fd00:ec2::254/128",  // AWS metadata service
		"fd20:ce::254/128",   // Google Cloud metadata service
		"ff00::/8",           // multicast
	} {
		networks = append(networks, netip.MustParsePrefix(text))
	}
	return networks
}

// embedded returns the IPv4 addresses embedded in an IPv6 address. Callers must check these
// addresses too, because a translator or tunnel can deliver packets to them. embedded returns
// nothing for IPv4-mapped addresses, which the caller unmaps.
//
// Source: RFC 4291, 2.5.5 (compatible and mapped), RFC 6052 (64:ff9b::/96), RFC 3056 (6to4), RFC
// 4380 (Teredo), RFC 5214 (ISATAP).
func embedded(address netip.Addr) []netip.Addr {
	if !address.Is6() || address.Is4In6() {
		return nil // the caller unmaps the address
	}
	b := address.As16()
	v4 := func(at int) netip.Addr { return netip.AddrFrom4([4]byte(b[at : at+4])) }
	var within []netip.Addr
	has := func(prefix ...byte) bool { return slices.Equal(b[:len(prefix)], prefix) }
	switch {
	case has(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), has(0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0):
		within = append(within, v4(12))
	case has(0x20, 0x02):
		within = append(within, v4(2))
	case has(0x20, 0x01, 0, 0):
		client := [4]byte{^b[12], ^b[13], ^b[14], ^b[15]}
		within = append(within, v4(4), netip.AddrFrom4(client))
	}
	if b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
		within = append(within, v4(12))
	}
	return within
}
