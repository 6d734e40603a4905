// Package clientaddr distinguishes clients by their addresses.
package clientaddr

import (
	"net"
	"net/netip"
)

// Network returns the IP address in a client's host:port, such as http.Request.RemoteAddr. For
// IPv6, it returns the /64 network, because a single customer can use all of its addresses. It
// returns any other text unchanged.
func Network(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	address, err := netip.ParseAddr(host)
	if err != nil || address.Unmap().Is4() {
		return host
	}
	const bits = 64
	prefix, err := address.WithZone("").Prefix(bits)
	if err != nil {
		return host
	}
	return prefix.String()
}
