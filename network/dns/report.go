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

// report logs what kept a query from being answered, at most once in reportPause: while the machine is offline every
// query fails alike.
type report struct {
	next plugin.Handler
	last atomic.Int64 // Unix nanoseconds
}

const reportPause = 30 * time.Second

func (h *report) Name() string { return "report" }

func (h *report) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	code, err := h.next.ServeDNS(ctx, w, r)
	if err == nil {
		return code, nil
	}
	now, last := time.Now().UnixNano(), h.last.Load()
	if now-last > int64(reportPause) && h.last.CompareAndSwap(last, now) {
		state := request.Request{W: w, Req: r}
		slog.Warn("cannot answer a DNS query", "name", state.QName(), "type", state.Type(), "client", state.IP(), "err", err)
	}
	return code, err
}

// shuffle changes the order of addresses from answer to answer, so that clients that take the first one spread over a
// headless service.
type shuffle struct{ next plugin.Handler }

func (h shuffle) Name() string { return "shuffle" }

func (h shuffle) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return h.next.ServeDNS(ctx, shuffledWriter{w}, r)
}

type shuffledWriter struct{ dns.ResponseWriter }

// WriteMsg shuffles the addresses, which come after the aliases that lead to them.
func (w shuffledWriter) WriteMsg(m *dns.Msg) error {
	first := 0
	for first < len(m.Answer) && !isAddress(m.Answer[first]) {
		first++
	}
	addresses := append([]dns.RR(nil), m.Answer[first:]...) // the original may be the cache's
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
