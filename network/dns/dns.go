// Package dns is the DNS server of the pods of one host: CoreDNS, as a library, in our process.
//
// It answers for the cluster's domain what Kubernetes' DNS specification 1.1 asks for (services, headless services,
// ports, pods by address, reverse names), and on top of that the names of OpenShift 3 (see names.go and endpoints.go).
// Everything else goes to the host's own resolvers.
//
// The handlers are CoreDNS's plug-ins, put together in Go instead of by a Corefile: CoreDNS's setup of its kubernetes
// plug-in would take over the log of every client-go and kubelet in the process, its configuration loader keeps
// process-wide lists, and its loop plug-in ends the process. A server built here touches nothing outside itself, so it
// can be stopped and started again. Names of the cluster are answered from memory and never cached; answers of other
// servers are.
package dns

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/cache"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/miekg/dns"
	"k8s.io/client-go/rest"
)

// Server is the part of a node that serves DNS to its pods. Fields without a remark are required.
type Server struct {
	Address    string       // IP address and port, for UDP and TCP; some device must have the address
	Domain     string       // the cluster's domain, such as cluster.local
	Config     *rest.Config // may list and watch services, endpoint slices and namespaces
	Upstreams  []string     // resolvers for other names, "IP" or "IP:port"; empty: those of ResolvConf
	ResolvConf string       // read again whenever it changes; empty: /etc/resolv.conf
}

// Name names the part.
func (s *Server) Name() string { return "dns" }

// Run serves until the context ends. It listens at once, so that names outside of the cluster resolve while the API
// server is away, and calls ready when it knows the cluster's services and answers. Until then a name of the cluster is
// a temporary failure (SERVFAIL).
func (s *Server) Run(ctx context.Context, ready func()) error {
	known, err := newCluster(s.Config, s.Domain)
	if err != nil {
		return fmt.Errorf("dns: %w", err)
	}
	up, err := newUpstreams(s.Address, s.Upstreams, s.ResolvConf)
	if err != nil {
		return fmt.Errorf("dns: %w", err)
	}
	server, err := s.assemble(known, up)
	if err != nil {
		return fmt.Errorf("dns: %w", err)
	}
	listener, err := server.Listen()
	if err != nil {
		return fmt.Errorf("dns: listen on %s/tcp: %w", s.Address, err)
	}
	packets, err := server.ListenPacket()
	if err != nil {
		listener.Close()
		return fmt.Errorf("dns: listen on %s/udp: %w", s.Address, err)
	}

	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	failed := make(chan error, 3)
	tasks.Go(func() { failed <- server.Serve(listener) })
	tasks.Go(func() { failed <- server.ServePacket(packets) })
	tasks.Go(known.APIConn.Run)
	tasks.Go(func() { up.follow(ctx) })
	tasks.Go(func() {
		if s.wait(ctx, known) == nil {
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
	if stopErr := known.APIConn.Stop(); stopErr != nil {
		slog.Warn("cannot stop watching services", "err", stopErr)
	}
	_ = server.Stop() // an error means that a slow client was cut off
	listener.Close()  // for the case that serving had not begun yet
	packets.Close()
	tasks.Wait()
	return err
}

// assemble puts the handlers in the order in which a query passes them.
func (s *Server) assemble(known *cluster, up *upstreams) (*dnsserver.Server, error) {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, fmt.Errorf("read address %q: %w", s.Address, err)
	}
	return dnsserver.NewServer(transport.DNS+"://"+s.Address, []*dnsserver.Config{{
		Zone:        ".",
		ListenHosts: []string{host},
		Port:        port,
		Transport:   transport.DNS,
		Plugin: []plugin.Plugin{
			func(next plugin.Handler) plugin.Handler { return &report{next: next} },
			func(next plugin.Handler) plugin.Handler { return shuffle{next} },
			func(next plugin.Handler) plugin.Handler { return &names{cluster: known, next: next} },
			func(next plugin.Handler) plugin.Handler { known.Next = next; return known },
			func(next plugin.Handler) plugin.Handler { return loopGuard{up.probes, next} },
			func(next plugin.Handler) plugin.Handler { c := cache.New(); c.Next = next; return c },
			func(plugin.Handler) plugin.Handler { return up },
		},
	}})
}

// wait returns when the server knows the cluster's services and answers by both protocols, or the context ends.
func (s *Server) wait(ctx context.Context, known *cluster) error {
	query := new(dns.Msg).SetQuestion("dns-version."+known.domain, dns.TypeTXT)
	for {
		if known.Ready() && answers(ctx, "udp", s.Address, query) && answers(ctx, "tcp", s.Address, query) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func answers(ctx context.Context, network, address string, query *dns.Msg) bool {
	client := dns.Client{Net: network, Timeout: time.Second}
	answer, _, err := client.ExchangeContext(ctx, query, address)
	return err == nil && len(answer.Answer) > 0
}
