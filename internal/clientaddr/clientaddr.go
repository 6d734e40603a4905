// Package clientaddr tells clients apart by their addresses.
package clientaddr

import (
	"net"
	"net/netip"
)

// Network returns the IP address of a client's address and port, as in http.Request.RemoteAddr, or for IP version 6 its
// /64 network, which belongs to one customer. Other text is returned as it is.
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
