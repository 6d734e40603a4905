package dns

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// FuzzQuery verifies that every query from a pod receives a response or an error code, and that
// each response can be packed.
func FuzzQuery(f *testing.F) {
	for _, name := range []string{
		"web.shop.svc.cluster.local.", "shop.endpoints.cluster.local.", "_http._tcp.web.shop.endpoints.cluster.local.", "endpoints.cluster.local.", "cluster.local.", ".",
		"a.b.c.d.e.web.shop.svc.cluster.local.", "10.0.30.172.in-addr.arpa.", "x.endpoints.cluster.local.",
	} {
		for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypeTXT, dns.TypeAXFR} {
			packet, err := new(dns.Msg).SetQuestion(name, kind).Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(packet)
		}
	}
	f.Add([]byte{})
	api, config := newAPI(f)
	shop(api)
	cluster, err := newCluster(config, "cluster.local")
	if err != nil {
		f.Fatal(err)
	}
	go cluster.APIConn.Run()
	f.Cleanup(func() { _ = cluster.APIConn.Stop() })
	eventually.True(f, "services are known", cluster.Ready)
	cluster.Next = plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		return dns.RcodeRefused, nil
	})
	server := &errorLogger{next: shuffle{&names{cluster: cluster, next: cluster}}}
	f.Fuzz(func(t *testing.T, packet []byte) {
		query := new(dns.Msg)
		if query.Unpack(packet) != nil || len(query.Question) != 1 { // CoreDNS itself responds
			return
		}
		recorder := dnstest.NewRecorder(&test.ResponseWriter{})
		_, _ = server.ServeDNS(t.Context(), recorder, query)
		if recorder.Msg == nil {
			return
		}
		if _, err := recorder.Msg.Pack(); err != nil {
			t.Errorf("%v: got response %v: %v", query, recorder.Msg, err)
		}
	})
}
