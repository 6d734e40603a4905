package hostaddr

import (
	"net"
	"net/netip"
)

// Reachable returns a host:port address that other hosts can reach: it replaces a loopback or
// unspecified address with own, the machine's address. Other strings are returned unchanged.
func Reachable(address string, own netip.Addr) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		return net.JoinHostPort(own.String(), port)
	}
	return address
}
