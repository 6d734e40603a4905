package dns

import (
	"context"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
	"golang.org/x/time/rate"

	"github.com/slipway-platform/slipway/internal/ratelimit"
)

// A client can cause workRate units of work per second, and workBurst additional units at once. A
// query is a unit of work, and so are workEndpoints combinations of an endpoint and a port that the
// server reads for a query. Package nat limits the rate of queries over UDP, but cannot count the
// queries in a TCP connection.
const workRate, workBurst, workEndpoints = 2_000, 4_000, 10

// workTimeout is the maximum delay of a query over TCP.
const workTimeout = 5 * time.Second

// pacer delays queries over TCP, and drops queries over UDP, of clients that cause too much work.
// Otherwise, one client could prevent the responses to others, and use the CPU time of the node.
type pacer struct {
	cluster *cluster
	next    plugin.Handler
	clients *ratelimit.Limiters[netip.Addr]
}

func newPacer(zone *cluster, next plugin.Handler) *pacer {
	return &pacer{zone, next, &ratelimit.Limiters[netip.Addr]{Rate: workRate, Burst: workBurst}}
}

func (*pacer) Name() string { return "pace" }

func (p *pacer) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r}
	client, err := netip.ParseAddr(state.IP())
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	now := time.Now()
	limiter, work := p.clients.At(client, now), p.work(state.Name())
	if state.Proto() == "udp" && !limiter.AllowN(now, work) {
		return dns.RcodeSuccess, nil // without a response, as if the network had dropped the query
	}
	if state.Proto() == "tcp" && !wait(ctx, limiter, work) {
		return dns.RcodeSuccess, w.Close()
	}
	return p.next.ServeDNS(ctx, w, r)
}

// wait waits until a client can cause more work. It returns false if this takes too long.
func wait(ctx context.Context, limiter *rate.Limiter, work int) bool {
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	return limiter.WaitN(ctx, work) == nil
}

// work returns the work for a query.
func (p *pacer) work(name string) int {
	labels, ok := p.cluster.labelsOf(name)
	if !ok || !p.cluster.Ready() {
		return 1
	}
	zone := labels[len(labels)-1]
	if zone == "svc" || zone == "endpoints" {
		labels = labels[:len(labels)-1]
	}
	if len(labels) < 2 {
		return 1
	}
	front, namespace := labels[:len(labels)-1], labels[len(labels)-1]
	service := front[len(front)-1]
	if found := p.cluster.service(service, namespace); zone != "endpoints" && len(front) == 1 && found != nil && !found.Headless() {
		return 1 // the server reads only the service
	}
	reads := 0
	for _, slice := range p.cluster.APIConn.EpIndex(object.EndpointsKey(service, namespace)) {
		for _, subset := range slice.Subsets {
			reads += len(subset.Addresses) * max(len(subset.Ports), 1)
		}
	}
	return min(1+reads/workEndpoints, workBurst)
}
