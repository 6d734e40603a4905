package dns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/forward"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/miekg/dns"
)

// upstreams hands queries to the host's resolvers. Which those are may change while it runs: a laptop moves to another
// network, a machine goes offline. Without any, a query is a temporary failure.
type upstreams struct {
	self       netip.AddrPort
	fixed      []string // IP:port; empty: read resolvConf
	resolvConf string
	probes     *probes
	current    atomic.Pointer[forward.Forward]
}

const followPause = 5 * time.Second

var errNoUpstream = errors.New("no resolver for names outside of the cluster: add one to the host's resolv.conf")

func newUpstreams(self string, fixed []string, resolvConf string) (*upstreams, error) {
	address, err := netip.ParseAddrPort(self)
	if err != nil {
		return nil, fmt.Errorf("read address %q: %w", self, err)
	}
	u := &upstreams{self: address, resolvConf: resolvConf, probes: newProbes()}
	if u.resolvConf == "" {
		u.resolvConf = "/etc/resolv.conf"
	}
	for _, server := range fixed {
		if address, err := netip.ParseAddr(server); err == nil {
			server = netip.AddrPortFrom(address, 53).String()
		}
		if _, err := netip.ParseAddrPort(server); err != nil {
			return nil, fmt.Errorf("read upstream resolver %q: %w", server, err)
		}
		u.fixed = append(u.fixed, server)
	}
	return u, nil
}

func (u *upstreams) Name() string { return "upstreams" }

func (u *upstreams) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	f := u.current.Load()
	if f == nil {
		return dns.RcodeServerFailure, errNoUpstream
	}
	return f.ServeDNS(ctx, w, r)
}

// follow keeps the resolvers current until the context ends.
func (u *upstreams) follow(ctx context.Context) {
	var seen []string
	first := true
	for {
		servers, err := u.servers()
		if err != nil {
			slog.Warn("cannot read resolvers", "err", err)
		} else if first || !slices.Equal(servers, seen) {
			u.use(u.withoutLoops(ctx, servers))
			seen, first = servers, false
		}
		select {
		case <-ctx.Done():
			u.use(nil)
			return
		case <-time.After(followPause):
		}
	}
}

// servers returns the resolvers as IP:port, without ourselves. A missing or empty resolv.conf has none.
func (u *upstreams) servers() ([]string, error) {
	if len(u.fixed) > 0 {
		return u.fixed, nil
	}
	config, err := dns.ClientConfigFromFile(u.resolvConf)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read resolvers from %q: %w", u.resolvConf, err)
	}
	var servers []string
	for _, server := range config.Servers {
		address := net.JoinHostPort(strings.TrimSpace(server), config.Port)
		parsed, err := netip.ParseAddrPort(address)
		if err != nil || parsed == u.self {
			continue
		}
		servers = append(servers, address)
	}
	return servers, nil
}

// use replaces the resolvers. The old ones finish what they have begun.
func (u *upstreams) use(servers []string) {
	var next *forward.Forward
	if len(servers) > 0 {
		next = forward.New()
		for _, server := range servers {
			next.SetProxy(proxy.NewProxy("forward", server, transport.DNS))
		}
	}
	if old := u.current.Swap(next); old != nil {
		_ = old.OnShutdown() // never fails
	}
}
