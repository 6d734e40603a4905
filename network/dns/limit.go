package dns

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
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
	next plugin.Handler
	// perClient is the limit per client.
	perClient int

	lock       sync.Mutex
	inProgress map[netip.Addr]int
	total      int
}

func newLimiter(next plugin.Handler, perClient int) *limiter {
	return &limiter{next: next, perClient: perClient, inProgress: map[netip.Addr]int{}}
}

func (*limiter) Name() string { return "limit" }

// ServeDNS passes a query to the next handler, or responds with a temporary failure if a limit is
// reached.
func (l *limiter) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	client, err := netip.ParseAddr((&request.Request{W: w, Req: r}).IP())
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	if !l.acquire(client) {
		return dns.RcodeServerFailure, errBusy
	}
	defer l.release(client)
	return l.next.ServeDNS(ctx, w, r)
}

func (l *limiter) acquire(client netip.Addr) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	own, clients := l.inProgress[client], len(l.inProgress)
	if own == 0 {
		clients++
	}
	if own >= l.perClient || l.total >= maxQueries && own >= maxQueries/clients {
		return false
	}
	l.total++
	l.inProgress[client]++
	return true
}

func (l *limiter) release(client netip.Addr) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.total--
	if l.inProgress[client]--; l.inProgress[client] == 0 {
		delete(l.inProgress, client)
	}
}
