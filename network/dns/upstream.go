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

// upstreams forwards queries to the host's resolvers. The resolvers can change at run time, for
// example when a laptop moves to another network or the host goes offline. If there are no
// resolvers, the response is a temporary failure.
type upstreams struct {
	self       netip.AddrPort
	fixed      []string // IP:port; if empty, resolvConf is used
	resolvConf string
	probes     *probes
	current    atomic.Pointer[forward.Forward]
}

const pollInterval = 5 * time.Second

var errNoUpstream = errors.New("no resolver for names outside the cluster; add one to the host's resolv.conf")

func newUpstreams(self string, fixed []string, resolvConf string) (*upstreams, error) {
	address, err := netip.ParseAddrPort(self)
	if err != nil {
		return nil, fmt.Errorf("parse address %q: %w", self, err)
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
			return nil, fmt.Errorf("parse upstream resolver %q: %w", server, err)
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

// poll updates the resolvers until ctx is done.
func (u *upstreams) poll(ctx context.Context) {
	var previous []string
	initial := true
	for {
		servers, err := u.servers()
		if err != nil {
			slog.Warn("cannot read resolvers", "error", err)
		} else if initial || !slices.Equal(servers, previous) {
			u.setServers(u.excludeLoops(ctx, servers))
			previous, initial = servers, false
		}
		select {
		case <-ctx.Done():
			u.setServers(nil)
			return
		case <-time.After(pollInterval):
		}
	}
}

// servers returns the resolvers as IP:port, excluding this server. It returns no resolvers if
// resolv.conf is missing or empty.
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
		addr, err := netip.ParseAddrPort(address)
		if err != nil || addr == u.self {
			continue
		}
		servers = append(servers, address)
	}
	return servers, nil
}

// setServers replaces the resolvers. In-flight queries to the old resolvers complete.
func (u *upstreams) setServers(servers []string) {
	var fwd *forward.Forward
	if len(servers) > 0 {
		fwd = forward.New()
		for _, server := range servers {
			fwd.SetProxy(proxy.NewProxy("forward", server, transport.DNS))
		}
	}
	if old := u.current.Swap(fwd); old != nil {
		_ = old.OnShutdown() // always returns nil
	}
}
