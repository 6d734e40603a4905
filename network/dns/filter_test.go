package dns

import (
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/slipway-platform/slipway/internal/componenttest"
)

// TestFilteredNamesAreNotForwarded queries names inside and outside the cluster. The service
// "external" is an alias for a name outside the cluster.
func TestFilteredNamesAreNotForwarded(t *testing.T) {
	api, config := newAPI(t)
	shop(api)
	var mutex sync.Mutex
	var forwarded []string
	upstream := resolver(t, func(q *dns.Msg) *dns.Msg {
		mutex.Lock()
		defer mutex.Unlock()
		if name := q.Question[0].Name; strings.HasSuffix(name, "example.com.") || strings.HasSuffix(name, ".arpa.") {
			forwarded = append(forwarded, name)
		}
		return new(dns.Msg).SetReply(q)
	})
	server := &Server{
		Address: freeAddress(t), Domain: "cluster.local", Config: config, Upstreams: []string{upstream},
		Allows: func(client netip.Addr, name string) bool {
			return client != netip.MustParseAddr("127.0.0.1") || name == "www.example.com."
		},
	}
	componenttest.Run(t, server.Run)
	for _, network := range []string{"udp", "tcp"} {
		for name, want := range map[string]string{
			"web.shop.svc.cluster.local.":      "NOERROR 172.30.0.10",
			"www.example.com.":                 "NOERROR",
			"secret.evil.example.com.":         "NXDOMAIN",
			"9.9.9.9.in-addr.arpa.":            "NXDOMAIN",
			"external.shop.svc.cluster.local.": "NOERROR db.example.com.",
		} {
			if got := query(t, network, server.Address, "A", name); got != want {
				t.Errorf("%s over %s: %s, want %s", name, network, got, want)
			}
		}
	}
	mutex.Lock()
	defer mutex.Unlock()
	if diff := cmp.Diff([]string{"www.example.com."}, forwarded); diff != "" {
		t.Errorf("forwarded names (-want +got):\n%s", diff)
	}
}
