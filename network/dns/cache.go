package dns

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/cache"
	"github.com/miekg/dns"
)

// All clients share the cache. The handlers before and after it ensure that the response to one
// client's query is also the right response for the other clients.

// plain forwards only the parts of a query that the cache distinguishes: the name, the type, and
// the flags for DNSSEC. A resolver's response can depend on other parts. For example, without the
// flag for recursion, the response is a referral, and a client subnet (RFC 7871) selects addresses.
type plain struct{ next plugin.Handler }

func (plain) Name() string { return "plain" }

func (h plain) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	query := &dns.Msg{
		MsgHdr:   dns.MsgHdr{Id: r.Id, RecursionDesired: true, AuthenticatedData: r.AuthenticatedData, CheckingDisabled: r.CheckingDisabled},
		Question: r.Question[:1],
	}
	if options := r.IsEdns0(); options != nil {
		query.SetEdns0(options.UDPSize(), options.Do())
	}
	return h.next.ServeDNS(context.WithValue(ctx, clientKey{}, w), w, query)
}

// clientKey is the key of the client's response writer in the context of a query.
type clientKey struct{}

// newCache returns a handler that caches responses of next, except failures and large responses.
func newCache(next plugin.Handler) plugin.Handler {
	c := cache.New()
	c.Next = selective{next}
	return c
}

// selective is the handler after the cache. Failures are not cached, because another client's query
// can succeed: for example, if it uses another protocol.
type selective struct{ next plugin.Handler }

func (selective) Name() string { return "selective" }

func (h selective) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	client := ctx.Value(clientKey{}).(dns.ResponseWriter)
	code, err := h.next.ServeDNS(ctx, &selectiveWriter{ResponseWriter: w, client: client}, r)
	if err == nil {
		return code, nil
	}
	// The cache stores failures for which the handler after it has not written a response.
	return dns.RcodeSuccess, client.WriteMsg(new(dns.Msg).SetRcode(r, code))
}

// selectiveWriter writes large responses to the client, and other responses to the cache.
type selectiveWriter struct {
	dns.ResponseWriter
	client dns.ResponseWriter
}

func (w *selectiveWriter) WriteMsg(m *dns.Msg) error {
	if memoryOf(m) > maxCached {
		return w.client.WriteMsg(m)
	}
	return w.ResponseWriter.WriteMsg(m)
}

// maxCached is the maximum size of a cached response, in bytes of memory. The cache contains about
// 20,000 responses, which use up to 160 MiB. Without this limit, the owner of a domain could fill
// the memory of the node with responses of up to 64 KiB, whose records use several megabytes.
const maxCached = 8 << 10

// recordSize is the approximate memory for a record, apart from its texts, in bytes.
const recordSize = 160

// memoryOf returns the approximate memory that a message uses, in bytes.
func memoryOf(m *dns.Msg) (bytes int) {
	for _, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, record := range section {
			bytes += recordSize + len(record.Header().Name) + dns.Len(record)
		}
	}
	return bytes
}
