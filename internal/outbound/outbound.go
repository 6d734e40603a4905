// Package outbound connects to servers that users of the platform name: registries of image
// streams, and whatever those redirect to. Users must not reach with the platform's own connections
// what they cannot reach with theirs. Every connection is therefore checked when its address is
// known, after the resolution of names and at each redirect.
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

// Policy says which servers users may have the platform connect to.
type Policy struct {
	// Cluster is the networks of the cluster's pods and services, which are refused.
	Cluster []netip.Prefix
	// AllowedNetworks are the networks that the administrator allows in spite of every other rule.
	AllowedNetworks []netip.Prefix
	// AllowedHosts are servers, as host and port, that the administrator or the platform itself
	// names. They may be anywhere. An entry without a port means the host's ports 80 and 443.
	AllowedHosts []string
}

// Dialer connects to servers that a policy allows. Any number of goroutines may use it.
type Dialer struct {
	policy     Policy
	special    []netip.Prefix
	plain      net.Dialer
	interfaces func() ([]net.Addr, error)
}

const (
	// connectTimeout bounds the time until a connection is there.
	connectTimeout = 10 * time.Second
	// stallTimeout bounds the time that a connection waits for the next byte.
	stallTimeout = time.Minute
)

// New returns the dialer of a policy.
func New(policy Policy) *Dialer {
	return &Dialer{
		policy: policy, special: specialNetworks(), plain: net.Dialer{Timeout: connectTimeout}, interfaces: net.InterfaceAddrs,
	}
}

// With returns a dialer that allows further hosts, which the administrator names.
func (d *Dialer) With(hosts ...string) *Dialer {
	wider := *d
	wider.policy.AllowedHosts = slices.Concat(d.policy.AllowedHosts, hosts)
	return &wider
}

// Refused is the error of a server that the policy does not allow. It does not say which address a
// name has, nor what is there, since the user may not know either.
type Refused struct {
	// Host is the server as the user or a redirect names it.
	Host string
}

// Error describes the rule and the remedy.
func (r *Refused) Error() string {
	return fmt.Sprintf("%q is in a network that users must not reach through the platform: the host's, the cluster's, or one that is not routed; "+
		"an administrator can allow it with slipway.outbound.allowedHosts or allowedNetworks of the MasterConfig", r.Host)
}

// DialContext connects to an address of host and port. Errors: Refused.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.named(address) {
		return d.trusted(ctx, network, address)
	}
	checked := d.plain
	checked.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err != nil || !d.Allowed(at.Addr()) {
			return &Refused{address}
		}
		return nil
	}
	return stalling(checked.DialContext(ctx, network, address))
}

// trusted connects to an address that the administrator has named.
func (d *Dialer) trusted(ctx context.Context, network, address string) (net.Conn, error) {
	return stalling(d.plain.DialContext(ctx, network, address))
}

func stalling(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	return &stallable{conn}, nil
}

// stallable is a connection whose reads end with an error when nothing comes.
type stallable struct{ net.Conn }

// Read waits a limited time.
func (s *stallable) Read(p []byte) (int, error) {
	if err := s.SetReadDeadline(time.Now().Add(stallTimeout)); err != nil {
		return 0, err
	}
	return s.Conn.Read(p)
}

// named reports whether the policy allows a server by its name.
func (d *Dialer) named(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	usual := port == "80" || port == "443"
	return slices.ContainsFunc(d.policy.AllowedHosts, func(allowed string) bool {
		return strings.EqualFold(allowed, address) || usual && strings.EqualFold(allowed, host)
	})
}

// Allowed reports whether the policy allows an address. If the addresses of the host cannot be
// read, it allows none.
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
	return !slices.ContainsFunc(all, func(ip netip.Addr) bool {
		return within(d.special, ip) || within(d.policy.Cluster, ip) || within(host, ip)
	})
}

// hostNetworks returns the networks that the host is connected to, with its own addresses in them.
func (d *Dialer) hostNetworks() ([]netip.Prefix, error) {
	addresses, err := d.interfaces()
	if err != nil {
		return nil, fmt.Errorf("list addresses of the host: %w", err)
	}
	var networks []netip.Prefix
	for _, address := range addresses {
		if network, err := netip.ParsePrefix(address.String()); err == nil {
			networks = append(networks, network.Masked())
		}
	}
	return networks, nil
}
