package egressrouter

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Target maps a port of the DNS proxy to a server. The DNS proxy connects the port's clients to the
// server.
type Target struct {
	Port uint16
	Host string // IP address or DNS name
	// RemotePort is the server's port.
	RemotePort uint16
}

func (t Target) address() string {
	return net.JoinHostPort(t.Host, strconv.Itoa(int(t.RemotePort)))
}

// ParseTargets parses EGRESS_DNS_PROXY_DESTINATION. Each line is one of
//
//	<port> <IP address or DNS name>
//	<port> <IP address or DNS name> <remote port>
//
// Blank lines and lines that begin with # are ignored.
func ParseTargets(text string) ([]Target, error) {
	list := lines(text)
	if len(list) == 0 {
		return nil, fmt.Errorf("%s is empty, must have lines such as %q", dnsDestinationVariable, "80 example.com")
	}
	var targets []Target
	var errs []error
	seen := map[uint16]bool{}
	for _, fields := range list {
		target, err := parseTarget(fields)
		if err == nil && seen[target.Port] {
			err = fmt.Errorf("port %d has two destinations", target.Port)
		}
		if err != nil {
			errs = append(errs, lineError(dnsDestinationVariable, fields, "%v", err))
			continue
		}
		seen[target.Port] = true
		targets = append(targets, target)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return targets, nil
}

func parseTarget(fields []string) (Target, error) {
	if len(fields) != 2 && len(fields) != 3 {
		return Target{}, errors.New("must be <port> <IP address or DNS name> [<remote port>]")
	}
	port, err := parsePort(fields[0])
	if err != nil {
		return Target{}, err
	}
	host := canonical(fields[1])
	if address, err := netip.ParseAddr(host); err == nil && !isHost(address) || err != nil && !isName(host) {
		return Target{}, fmt.Errorf("%q is not the IP address or DNS name of a server", fields[1])
	}
	target := Target{Port: port, Host: host, RemotePort: port}
	if len(fields) == 3 {
		target.RemotePort, err = parsePort(fields[2])
	}
	return target, err
}
