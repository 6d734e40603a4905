package dns

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
)

// Observer receives the addresses in a response and their TTL before the client receives the
// response. If Observer returns an error, the client receives a temporary failure (SERVFAIL) and
// can retry.
type Observer func(ctx context.Context, name string, addresses []netip.Addr, ttl time.Duration) error

// observed passes responses to an Observer before the client receives them.
type observed struct {
	observe Observer
	next    plugin.Handler
}

func (h observed) Name() string { return "observe" }

func (h observed) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return h.next.ServeDNS(ctx, &observedWriter{ResponseWriter: w, ctx: ctx, query: r, observe: h.observe}, r)
}

type observedWriter struct {
	dns.ResponseWriter
	ctx     context.Context //nolint:containedctx // context of the query that the writer responds to
	query   *dns.Msg
	observe Observer
}

func (w *observedWriter) WriteMsg(m *dns.Msg) error {
	name := w.query.Question[0].Name
	addresses, ttl := addressesOf(name, m)
	if len(addresses) > 0 {
		if err := w.observe(w.ctx, name, addresses, ttl); err != nil {
			slog.Warn("cannot use DNS response", "query", name, "error", err)
			m = new(dns.Msg).SetRcode(w.query, dns.RcodeServerFailure)
		}
	}
	return w.ResponseWriter.WriteMsg(m)
}

// addressesOf returns the addresses for a name in a response, and their TTL. It follows only the
// CNAME records that start at the name: a server can also add records for other names, for which it
// is not authoritative.
func addressesOf(name string, m *dns.Msg) (addresses []netip.Addr, ttl time.Duration) {
	targets := map[string]bool{strings.ToLower(name): true}
	for range m.Answer { // repeat, because the records of a CNAME chain can be in any order
		before := len(targets)
		for _, record := range m.Answer {
			if alias, ok := record.(*dns.CNAME); ok && targets[strings.ToLower(alias.Hdr.Name)] {
				targets[strings.ToLower(alias.Target)] = true
			}
		}
		if len(targets) == before {
			break
		}
	}
	for _, record := range m.Answer {
		header := record.Header()
		if !targets[strings.ToLower(header.Name)] {
			continue
		}
		var ip net.IP
		switch record := record.(type) {
		case *dns.A:
			ip = record.A
		case *dns.AAAA:
			ip = record.AAAA
		}
		if address, ok := netip.AddrFromSlice(ip); ok {
			addresses = append(addresses, address.Unmap())
		}
		if duration := time.Duration(header.Ttl) * time.Second; ttl == 0 || duration < ttl {
			ttl = duration
		}
	}
	return addresses, ttl
}
