// Package outbound connects to servers that users specify: the registries of image streams, and the
// targets of their redirects. The platform's connections must not give users access to servers that
// they cannot reach themselves. Therefore, the package checks the address of every connection after
// name resolution and after each redirect.
package outbound

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Policy defines which servers the platform connects to on behalf of users.
type Policy struct {
	// Cluster contains the networks of the cluster's pods and services. Dialer does not connect to
	// them.
	Cluster []netip.Prefix
	// Hosts, if set, returns the addresses of the cluster's hosts, to which Dialer does not
	// connect. The check of this host's networks is not sufficient, because the networks of other
	// hosts can differ.
	Hosts func() []netip.Addr
	// AllowedNetworks contains networks that the administrator allows. They take precedence over
	// every other rule.
	AllowedNetworks []netip.Prefix
	// AllowedHosts contains servers, as host or host:port, that the administrator or the platform
	// allows regardless of their IP addresses. An entry without a port allows the host's ports 80
	// and 443.
	AllowedHosts []string
}

// Dialer connects to servers that a policy allows. It is safe for concurrent use.
type Dialer struct {
	policy     Policy
	special    []netip.Prefix
	plain      net.Dialer
	interfaces func() ([]net.Addr, error)
}

const (
	// connectTimeout is the maximum time to establish a connection.
	connectTimeout = 10 * time.Second
	// stallTimeout is the maximum time that a connection waits for the next byte.
	stallTimeout = time.Minute
)

// New returns a dialer for a policy.
func New(policy Policy) *Dialer {
	return &Dialer{
		policy: policy, special: specialNetworks(), plain: net.Dialer{Timeout: connectTimeout}, interfaces: net.InterfaceAddrs,
	}
}

// With returns a dialer that also allows the given hosts, which the administrator configured.
func (d *Dialer) With(hosts ...string) *Dialer {
	wider := *d
	wider.policy.AllowedHosts = slices.Concat(d.policy.AllowedHosts, hosts)
	return &wider
}

// Refused is the error for a server that the policy does not allow. It contains neither the
// server's address nor any response, because the user might not be allowed to see them.
type Refused struct {
	// Host is the server as specified in the user's request or in the redirect.
	Host string
}

// Error states the rule and the remedy.
func (r *Refused) Error() string {
	return fmt.Sprintf("%q is in a network that users must not reach through the platform: the host's, the cluster's, or one that is not routed; "+
		"an administrator can allow it with slipway.outbound.allowedHosts or allowedNetworks of the MasterConfig", r.Host)
}

// DialContext connects to host:port. If the policy does not allow the server, it returns a
// *Refused.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.isListed(address) {
		return d.trusted(ctx, network, address)
	}
	dialer := d.plain
	dialer.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err != nil || !d.Allowed(at.Addr()) {
			return &Refused{address}
		}
		return nil
	}
	return stalling(dialer.DialContext(ctx, network, address))
}

// trusted connects to an address that the administrator allows.
func (d *Dialer) trusted(ctx context.Context, network, address string) (net.Conn, error) {
	return stalling(d.plain.DialContext(ctx, network, address))
}

func stalling(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	return &stallable{conn}, nil
}

// stallable is a connection whose reads fail after stallTimeout without data.
type stallable struct{ net.Conn }

// Read waits for up to stallTimeout.
func (s *stallable) Read(p []byte) (int, error) {
	if err := s.SetReadDeadline(time.Now().Add(stallTimeout)); err != nil {
		return 0, err
	}
	return s.Conn.Read(p)
}

// isListed reports whether the policy allows a server by name.
func (d *Dialer) isListed(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	usual := port == "80" || port == "443"
	return slices.ContainsFunc(d.policy.AllowedHosts, func(allowed string) bool {
		return strings.EqualFold(allowed, address) || usual && strings.EqualFold(allowed, host)
	})
}

// Allowed reports whether the policy allows an address. It returns false if the host's addresses
// cannot be read.
func (d *Dialer) Allowed(address netip.Addr) bool {
	within := func(networks []netip.Prefix, ip netip.Addr) bool {
		return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(ip) })
	}
	all := append([]netip.Addr{address.Unmap().WithZone("")}, embedded(address)...)
	if within(d.policy.AllowedNetworks, all[0]) {
		return true
	}
	host, err := d.hostNetworks()
	if err != nil {
		return false
	}
	var hosts []netip.Addr
	if d.policy.Hosts != nil {
		hosts = d.policy.Hosts()
	}
	return !slices.ContainsFunc(all, func(ip netip.Addr) bool {
		return slices.Contains(hosts, ip) || within(d.special, ip) || within(d.policy.Cluster, ip) || within(host, ip)
	})
}

// hostNetworks returns the networks that the host is connected to.
func (d *Dialer) hostNetworks() ([]netip.Prefix, error) {
	addresses, err := d.interfaces()
	if err != nil {
		return nil, fmt.Errorf("list host addresses: %w", err)
	}
	var networks []netip.Prefix
	for _, address := range addresses {
		if network, err := netip.ParsePrefix(address.String()); err == nil {
			networks = append(networks, network.Masked())
		}
	}
	return networks, nil
}
