package egressrouter

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// Destination defines the servers to which the pod redirects connections to its cluster address.
// The pod itself handles all other connections.
type Destination struct {
	Redirects []Redirect
	// Fallbacks receive the connections to all other ports, on the same port. There is at most one
	// for each IP family.
	Fallbacks []netip.Addr
}

// servers returns the addresses of all servers.
func (d Destination) servers() (addresses []netip.Addr) {
	for _, r := range d.Redirects {
		addresses = append(addresses, r.To.Addr())
	}
	return append(addresses, d.Fallbacks...)
}

// Redirect redirects the connections to one port.
type Redirect struct {
	Protocol string // tcp or udp
	Port     uint16
	To       netip.AddrPort
}

// ParseDestination parses EGRESS_DESTINATION. Each line is one of
//
//	<port> <tcp|udp> <IP address>
//	<port> <tcp|udp> <IP address> <remote port>
//	<IP address>
//
// Connections over IPv4 are redirected to IPv4 addresses, and connections over IPv6 to IPv6
// addresses. The third form must be the last line, or the last two lines, one for each IP family.
// Blank lines and lines that begin with # are ignored.
func ParseDestination(text string) (Destination, error) {
	var d Destination
	var errs []error
	list := lines(text)
	if len(list) == 0 {
		return d, fmt.Errorf("%s is empty, must be an IP address or lines such as %q", destinationVariable, "80 tcp 203.0.113.25")
	}
	type listener struct {
		family   ipfamily.Family
		protocol string
		port     uint16
	}
	seen, fallbacks := map[listener]bool{}, map[ipfamily.Family]bool{}
	for i, fields := range list {
		fail := func(format string, args ...any) {
			errs = append(errs, lineError(destinationVariable, fields, format, args...))
		}
		if len(fields) == 1 {
			address, err := netip.ParseAddr(fields[0])
			switch {
			case err != nil || !isHost(address):
				fail("must be <port> <tcp|udp> <IP address> [<remote port>], or one IP address")
			case i < len(list)-1 && len(list[i+1]) > 1:
				fail("the address for all other ports must be the last line")
			case fallbacks[ipfamily.Of(address)]:
				fail("%s has two addresses for all other ports", ipfamily.Of(address))
			default:
				fallbacks[ipfamily.Of(address)] = true
				d.Fallbacks = append(d.Fallbacks, address)
			}
			continue
		}
		redirect, err := parseRedirect(fields)
		if err != nil {
			fail("%v", err)
			continue
		}
		if key := (listener{ipfamily.Of(redirect.To.Addr()), redirect.Protocol, redirect.Port}); seen[key] {
			fail("port %d/%s has two destinations", redirect.Port, redirect.Protocol)
		} else {
			seen[key] = true
		}
		d.Redirects = append(d.Redirects, redirect)
	}
	if err := errors.Join(errs...); err != nil {
		return Destination{}, err
	}
	return d, nil
}

func parseRedirect(fields []string) (Redirect, error) {
	if len(fields) != 3 && len(fields) != 4 {
		return Redirect{}, errors.New("must be <port> <tcp|udp> <IP address> [<remote port>], or one IP address")
	}
	port, err := parsePort(fields[0])
	if err != nil {
		return Redirect{}, err
	}
	if fields[1] != "tcp" && fields[1] != "udp" {
		return Redirect{}, fmt.Errorf("protocol %q must be tcp or udp", fields[1])
	}
	address, err := netip.ParseAddr(fields[2])
	if err != nil || !isHost(address) {
		return Redirect{}, fmt.Errorf("%q is not the IP address of a server", fields[2])
	}
	remote := port
	if len(fields) == 4 {
		if remote, err = parsePort(fields[3]); err != nil {
			return Redirect{}, err
		}
	}
	return Redirect{Protocol: fields[1], Port: port, To: netip.AddrPortFrom(address, remote)}, nil
}

func parsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("port %q must be a number from 1 to 65535", text)
	}
	return uint16(port), nil
}
