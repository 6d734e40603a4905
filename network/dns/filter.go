package dns

import (
	"context"
	"net/netip"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
)

// Filter reports whether a client can resolve a name outside the cluster.
type Filter func(client netip.Addr, name string) bool

// filtered responds that a name does not exist (NXDOMAIN) if its Filter does not allow the name.
// After other response codes, such as REFUSED, some clients would ignore the rest of their search
// list.
type filtered struct {
	allows Filter
	next   plugin.Handler
}

func (h filtered) Name() string { return "filter" }

func (h filtered) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r}
	client, err := netip.ParseAddr(state.IP())
	if err != nil || !h.allows(client.Unmap(), state.QName()) {
		return dns.RcodeNameError, w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeNameError))
	}
	return h.next.ServeDNS(ctx, w, r)
}
