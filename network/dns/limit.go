package dns

import (
	"context"
	"errors"
	"net/netip"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"

	"github.com/slipway-platform/slipway/internal/fairshare"
)

// maxClientQueries and maxQueries are the maximum numbers of queries that wait for resolvers at the
// same time, from one client and in total. A domain's name server might never respond, so a query
// can use a socket and memory in the node's process for up to five seconds. If the total is
// reached, a client can still use an equal share of it, so that no other client can prevent its
// queries. The total can therefore double.
const maxClientQueries, maxQueries = 512, 8192

var errBusy = errors.New("too many queries from this client, or from all clients, are waiting for resolvers")

// limiter limits the number of queries in progress.
type limiter struct {
	next    plugin.Handler
	queries fairshare.Shares[netip.Addr] // by client
}

func newLimiter(next plugin.Handler, perClient int) *limiter {
	return &limiter{next: next, queries: fairshare.Shares[netip.Addr]{PerKey: perClient, Total: maxQueries}}
}

func (*limiter) Name() string { return "limit" }

// ServeDNS passes a query to the next handler, or responds with a temporary failure if a limit is
// reached.
func (l *limiter) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	client, err := netip.ParseAddr((&request.Request{W: w, Req: r}).IP())
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	if !l.queries.Acquire(client) {
		return dns.RcodeServerFailure, errBusy
	}
	defer l.queries.Release(client)
	return l.next.ServeDNS(ctx, w, r)
}
