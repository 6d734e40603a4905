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

// probes finds resolvers that hand our queries back to us: before a resolver is used, it is asked for a random name;
// if that question arrives here, the resolver leads in a circle. (A local resolver that names us as its own does that.)
type probes struct {
	mutex   sync.Mutex
	arrived map[string]bool // by the name asked for; present while a probe is under way
}

func newProbes() *probes { return &probes{arrived: map[string]bool{}} }

// loops asks one resolver.
func (p *probes) loops(ctx context.Context, server string) bool {
	name := fmt.Sprintf("%s.%s.", strings.ToLower(rand.Text()[:16]), strings.ToLower(rand.Text()[:16]))
	p.mutex.Lock()
	p.arrived[name] = false
	p.mutex.Unlock()

	client := dns.Client{Timeout: 2 * time.Second}
	// The answer says nothing, nor does a failure: the resolver may be away for the moment.
	_, _, _ = client.ExchangeContext(ctx, new(dns.Msg).SetQuestion(name, dns.TypeHINFO), server)

	p.mutex.Lock()
	defer p.mutex.Unlock()
	looped := p.arrived[name]
	delete(p.arrived, name)
	return looped
}

// caught tells whether a name is that of a probe, and remembers that it arrived.
func (p *probes) caught(name string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	name = strings.ToLower(name)
	_, probing := p.arrived[name]
	if probing {
		p.arrived[name] = true
	}
	return probing
}

// withoutLoops returns the resolvers that do not lead back to us.
func (u *upstreams) withoutLoops(ctx context.Context, servers []string) []string {
	looped := make([]bool, len(servers))
	var wait sync.WaitGroup
	for i, server := range servers {
		wait.Go(func() { looped[i] = u.probes.loops(ctx, server) })
	}
	wait.Wait()
	var usable []string
	for i, server := range servers {
		if looped[i] {
			slog.Warn("a resolver leads back to this DNS server and is not used; remove one of the two from the other's resolvers",
				"resolver", server, "self", u.self)
			continue
		}
		usable = append(usable, server)
	}
	return usable
}

// loopGuard catches probes that came back.
type loopGuard struct {
	probes *probes
	next   plugin.Handler
}

func (g loopGuard) Name() string { return "loop-guard" }

func (g loopGuard) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if g.probes.caught(r.Question[0].Name) {
		return dns.RcodeRefused, nil
	}
	return g.next.ServeDNS(ctx, w, r)
}
