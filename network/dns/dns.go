// Package dns implements the DNS server for a host's pods and for the masters, with CoreDNS as a
// library.
//
// It serves the cluster domain according to version 1.1 of the Kubernetes DNS specification:
// services, headless services, ports, pods by address, and reverse names. It also serves additional
// OpenShift 3 names (see names.go and endpoints.go). It forwards queries for other names to the
// host's resolvers. The server reports its responses to package policy, which stores the addresses
// of the names in egress firewalls.
//
// The handlers are CoreDNS's plugins. They are configured in Go instead of a Corefile, because
// parts of CoreDNS affect the whole process. The setup function of the kubernetes plugin would
// replace the logger of client-go and the kubelet. The configuration loader has process-wide lists,
// and the loop plugin exits the process. This server has no process-wide effects, so it can be
// stopped and started again. Cluster names are served from memory and never cached; responses from
// other servers are cached.
package dns

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/bufsize"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/miekg/dns"
	"k8s.io/client-go/rest"
)

// Server is the component that serves DNS to a node's pods, or to a master's clients. All fields
// are required unless stated otherwise.
type Server struct {
	Part    string // the component's name; "dns" by default
	Address string // IP address and port, for UDP and TCP; a device must have the address
	// OnlyIPv4 restricts the server to the host's IPv4 addresses if Address is 0.0.0.0.
	OnlyIPv4 bool
	Domain   string       // the cluster's domain, such as cluster.local
	Config   *rest.Config // can list and watch services, endpoint slices and namespaces
	// Upstreams contains the resolvers for other names, as "IP" or "IP:port". The default is the
	// name servers in ResolvConf.
	Upstreams  []string
	ResolvConf string // reread after changes; the default is /etc/resolv.conf
	// Observe, if set, receives the addresses in a response before the client receives them.
	Observe Observer
	// Allows, if set, determines which names outside the cluster a client can resolve.
	Allows Filter
	// ClusterOnly means that the server refuses queries for names outside the cluster. It is then
	// safe to listen on an address that any client can reach.
	ClusterOnly bool
	// OldSRV means that SRV records are served in the OpenShift 3 form instead of the Kubernetes
	// form.
	OldSRV bool
	// Networks, if set, lists the networks whose addresses can have names in the cluster. Otherwise,
	// users could give other addresses names, because endpoints can have any address.
	Networks []netip.Prefix

	// clientQueries, if not 0, replaces maxClientQueries in tests.
	clientQueries int
}

// Name returns the component's name.
func (s *Server) Name() string { return cmp.Or(s.Part, "dns") }

// Run serves until ctx is done. It listens immediately, so that external names resolve even if the
// API server is down. It calls ready when the cluster's services are cached and the server responds
// to queries. Until then, the response for a cluster name is a temporary failure (SERVFAIL).
func (s *Server) Run(ctx context.Context, ready func()) error {
	zone, err := newCluster(s.Config, s.Domain)
	if err != nil {
		return fmt.Errorf("dns: %w", err)
	}
	forwarder, err := newUpstreams(s.Address, s.Upstreams, s.ResolvConf)
	if err != nil {
		return fmt.Errorf("dns: %w", err)
	}
	server, err := s.newServer(zone, forwarder)
	if err != nil {
		return fmt.Errorf("dns: %w", err)
	}
	listener, packets, err := s.listen(server)
	if err != nil {
		return fmt.Errorf("dns: %w", err)
	}

	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	failed := make(chan error, 3)
	tasks.Go(func() { failed <- server.Serve(listener) })
	tasks.Go(func() { failed <- server.ServePacket(packets) })
	tasks.Go(zone.APIConn.Run)
	if !s.ClusterOnly {
		tasks.Go(func() { forwarder.poll(ctx) })
	}
	tasks.Go(func() {
		if s.waitReady(ctx, zone) == nil {
			ready()
		}
	})

	select {
	case <-ctx.Done():
		err = nil
	case err = <-failed:
		err = fmt.Errorf("dns: serve: %w", err)
	}
	cancel()
	if stopErr := zone.APIConn.Stop(); stopErr != nil {
		slog.Warn("cannot stop watching services", "error", stopErr)
	}
	_ = server.Stop() // an error means that a slow client was disconnected
	listener.Close()  // needed if Stop was called before the server started
	packets.Close()
	tasks.Wait()
	return err
}

// listen listens for TCP connections and UDP datagrams.
func (s *Server) listen(server *dnsserver.Server) (listener net.Listener, packets net.PacketConn, err error) {
	if s.OnlyIPv4 {
		listener, err = net.Listen("tcp4", s.Address)
	} else {
		listener, err = server.Listen()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("listen on %s/tcp: %w", s.Address, err)
	}
	if s.OnlyIPv4 {
		packets, err = net.ListenPacket("udp4", s.Address)
	} else {
		packets, err = server.ListenPacket()
	}
	if err != nil {
		listener.Close()
		return nil, nil, fmt.Errorf("listen on %s/udp: %w", s.Address, err)
	}
	return listener, packets, nil
}

// maxDatagram is the maximum size, in bytes, of UDP responses on an address that any client can
// reach. Without this limit, a client that forges its address could direct responses of up to 64
// KiB to a victim. The value is the recommendation of DNS Flag Day 2020.
const maxDatagram = 1232

// newServer returns a server. Its handlers are listed in the order in which they process a query.
func (s *Server) newServer(zone *cluster, forwarder *upstreams) (*dnsserver.Server, error) {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, fmt.Errorf("parse address %q: %w", s.Address, err)
	}
	handlers := []plugin.Plugin{
		func(next plugin.Handler) plugin.Handler { return &errorLogger{next: next} },
		func(next plugin.Handler) plugin.Handler { return newPacer(zone, next) },
		func(next plugin.Handler) plugin.Handler { return shuffle{next} },
		func(next plugin.Handler) plugin.Handler {
			return &names{cluster: zone, next: next, oldSRV: s.OldSRV, networks: s.Networks}
		},
		func(next plugin.Handler) plugin.Handler { zone.Next = next; return zone },
	}
	if s.Observe != nil {
		handlers = slices.Insert(handlers, 3, func(next plugin.Handler) plugin.Handler { return observed{s.Observe, next} })
	}
	if s.ClusterOnly {
		handlers = slices.Insert(handlers, 0, func(next plugin.Handler) plugin.Handler { return bufsize.Bufsize{Next: next, Size: maxDatagram} })
		handlers = append(handlers, func(plugin.Handler) plugin.Handler { return refuser{} })
	} else {
		if s.Allows != nil {
			handlers = append(handlers, func(next plugin.Handler) plugin.Handler { return filtered{s.Allows, next} })
		}
		handlers = append(handlers,
			func(next plugin.Handler) plugin.Handler { return loopGuard{forwarder.probes, next} },
			func(next plugin.Handler) plugin.Handler { return plain{next} },
			newCache,
			func(next plugin.Handler) plugin.Handler { return &errorLogger{next: next} },
			func(next plugin.Handler) plugin.Handler {
				return newLimiter(next, cmp.Or(s.clientQueries, maxClientQueries))
			},
			func(plugin.Handler) plugin.Handler { return forwarder },
		)
	}
	return dnsserver.NewServer(transport.DNS+"://"+s.Address, []*dnsserver.Config{{
		Zone: ".", ListenHosts: []string{host}, Port: port, Transport: transport.DNS, Plugin: handlers,
	}})
}

// waitReady waits until the cluster's services are cached and the server responds on both
// protocols, or until ctx is done.
func (s *Server) waitReady(ctx context.Context, zone *cluster) error {
	query := new(dns.Msg).SetQuestion("dns-version."+zone.domain, dns.TypeTXT)
	for {
		if zone.Ready() && responds(ctx, "udp", s.Address, query) && responds(ctx, "tcp", s.Address, query) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func responds(ctx context.Context, network, address string, query *dns.Msg) bool {
	client := dns.Client{Net: network, Timeout: time.Second}
	resp, _, err := client.ExchangeContext(ctx, query, address)
	return err == nil && len(resp.Answer) > 0
}
