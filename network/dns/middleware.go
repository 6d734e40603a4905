package dns

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
)

// errorLogger logs why a query failed, at most once per logInterval, because all queries fail in
// the same way while the host is offline.
type errorLogger struct {
	next    plugin.Handler
	lastLog atomic.Int64 // Unix nanoseconds
}

const logInterval = 30 * time.Second

func (h *errorLogger) Name() string { return "report" }

func (h *errorLogger) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	code, err := h.next.ServeDNS(ctx, w, r)
	if err == nil {
		return code, nil
	}
	current, previous := time.Now().UnixNano(), h.lastLog.Load()
	if current-previous > int64(logInterval) && h.lastLog.CompareAndSwap(previous, current) {
		state := request.Request{W: w, Req: r}
		slog.Warn("cannot respond to DNS query", "query", state.QName(), "type", state.Type(), "client", state.IP(), "error", err)
	}
	return code, err
}

// refuser refuses all queries.
type refuser struct{}

func (refuser) Name() string { return "refuse" }

func (refuser) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return dns.RcodeRefused, nil
}

// shuffle randomizes the order of the addresses in each response. Most clients use the first
// address, so the random order spreads the clients over the endpoints of a headless service.
type shuffle struct{ next plugin.Handler }

func (h shuffle) Name() string { return "shuffle" }

func (h shuffle) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return h.next.ServeDNS(ctx, shuffledWriter{w}, r)
}

type shuffledWriter struct{ dns.ResponseWriter }

// WriteMsg shuffles the addresses, which follow the CNAME records.
func (w shuffledWriter) WriteMsg(m *dns.Msg) error {
	first := 0
	for first < len(m.Answer) && !isAddress(m.Answer[first]) {
		first++
	}
	// Copy the addresses, because the original message might be in the cache.
	addresses := append([]dns.RR(nil), m.Answer[first:]...)
	for _, record := range addresses {
		if !isAddress(record) {
			return w.ResponseWriter.WriteMsg(m)
		}
	}
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	shuffled := *m
	shuffled.Answer = append(append([]dns.RR(nil), m.Answer[:first]...), addresses...)
	return w.ResponseWriter.WriteMsg(&shuffled)
}

func isAddress(record dns.RR) bool {
	kind := record.Header().Rrtype
	return kind == dns.TypeA || kind == dns.TypeAAAA
}
