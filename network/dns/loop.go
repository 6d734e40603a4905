package dns

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
)

// probes detects resolvers that forward queries back to this server. Before the server uses a
// resolver, it sends a query for a random name to the resolver. If that query arrives at this
// server, the resolver forms a loop. This happens if a local resolver is configured to use this
// server.
type probes struct {
	mutex sync.Mutex
	seen  map[string]bool // keys are the names of running probes; true if the probe has arrived
}

func newProbes() *probes { return &probes{seen: map[string]bool{}} }

// isLoop reports whether a resolver forms a loop, by sending a probe to it.
func (p *probes) isLoop(ctx context.Context, server string) bool {
	name := fmt.Sprintf("%s.%s.", strings.ToLower(rand.Text()[:16]), strings.ToLower(rand.Text()[:16]))
	p.mutex.Lock()
	p.seen[name] = false
	p.mutex.Unlock()

	client := dns.Client{Timeout: 2 * time.Second}
	// Ignore the response and any error: the resolver might be temporarily down.
	_, _, _ = client.ExchangeContext(ctx, new(dns.Msg).SetQuestion(name, dns.TypeHINFO), server)

	p.mutex.Lock()
	defer p.mutex.Unlock()
	looped := p.seen[name]
	delete(p.seen, name)
	return looped
}

// isProbe reports whether a name belongs to a probe, and records that the probe has arrived.
func (p *probes) isProbe(name string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	name = strings.ToLower(name)
	_, probing := p.seen[name]
	if probing {
		p.seen[name] = true
	}
	return probing
}

// excludeLoops returns the resolvers that do not form a loop.
func (u *upstreams) excludeLoops(ctx context.Context, servers []string) []string {
	isLoop := make([]bool, len(servers))
	var wait sync.WaitGroup
	for i, server := range servers {
		wait.Go(func() { isLoop[i] = u.probes.isLoop(ctx, server) })
	}
	wait.Wait()
	var usable []string
	for i, server := range servers {
		if isLoop[i] {
			slog.Warn("resolver is not used, because it forwards queries back to this DNS server; remove it from the host's resolv.conf, or this DNS server from its forwarders",
				"resolver", server, "self", u.self)
			continue
		}
		usable = append(usable, server)
	}
	return usable
}

// loopGuard handles incoming probes.
type loopGuard struct {
	probes *probes
	next   plugin.Handler
}

func (g loopGuard) Name() string { return "loop-guard" }

func (g loopGuard) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if g.probes.isProbe(r.Question[0].Name) {
		return dns.RcodeRefused, nil
	}
	return g.next.ServeDNS(ctx, w, r)
}
