package dns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/slipway-platform/slipway/internal/componenttest"
)

// message returns a response that contains the given records.
func message(t *testing.T, name string, records ...string) *dns.Msg {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, dns.TypeA)
	for _, text := range records {
		record, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		m.Answer = append(m.Answer, record)
	}
	return m
}

func TestAddressesOfAResponse(t *testing.T) {
	const name = "www.foo.com."
	for _, tt := range []struct {
		name    string
		records []string
		want    string
	}{
		{"addresses", []string{"www.foo.com. 60 IN A 192.0.2.1", "www.foo.com. 30 IN A 192.0.2.2"}, "[192.0.2.1 192.0.2.2] 30s"},
		{"upper case", []string{"WWW.foo.COM. 60 IN A 192.0.2.1"}, "[192.0.2.1] 1m0s"},
		{"aliases", []string{"www.foo.com. 20 IN CNAME a.cdn.net.", "a.cdn.net. 40 IN CNAME b.cdn.net.", "b.cdn.net. 60 IN A 192.0.2.1"}, "[192.0.2.1] 20s"},
		{"aliases in another order", []string{"b.cdn.net. 60 IN A 192.0.2.1", "a.cdn.net. 40 IN CNAME b.cdn.net.", "www.foo.com. 20 IN CNAME a.cdn.net."}, "[192.0.2.1] 20s"},
		{"aliases in a circle", []string{"www.foo.com. 20 IN CNAME a.cdn.net.", "a.cdn.net. 40 IN CNAME www.foo.com."}, "[] 20s"},
		{"another name", []string{"www.foo.com. 60 IN A 192.0.2.1", "evil.org. 60 IN A 192.0.2.9"}, "[192.0.2.1] 1m0s"},
		{"only another name", []string{"evil.org. 60 IN A 192.0.2.9"}, "[] 0s"},
		{"IPv6", []string{"www.foo.com. 60 IN AAAA 2001:db8::1"}, "[2001:db8::1] 1m0s"},
		{"no records", nil, "[] 0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addresses, ttl := addressesOf(name, message(t, name, tt.records...))
			if got := fmt.Sprint(addresses, ttl); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestObserverPrecedesTheClient(t *testing.T) {
	api, config := newAPI(t)
	shop(api)
	var mutex sync.Mutex
	var observed []string
	var failure error
	observe := func(_ context.Context, name string, addresses []netip.Addr, _ time.Duration) error {
		mutex.Lock()
		defer mutex.Unlock()
		observed = append(observed, fmt.Sprint(name, addresses))
		return failure
	}
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, Upstreams: []string{resolver(t, nil)}, Observe: observe}
	componenttest.Run(t, server.Run)
	check := func(name, wantAnswer, want string) {
		t.Helper()
		got := query(t, "udp", server.Address, "A", name)
		mutex.Lock()
		defer mutex.Unlock()
		if seen := strings.Join(observed, " "); got != wantAnswer || seen != want {
			t.Errorf("%s: response %q, observed %q; want %q, %q", name, got, seen, wantAnswer, want)
		}
		observed = nil
	}
	check("db.example.com.", "NOERROR 198.51.100.9", "db.example.com.[198.51.100.9]")
	check("db.example.com.", "NOERROR 198.51.100.9", "db.example.com.[198.51.100.9]") // from the cache
	// The service is an alias for an external name, which is resolved first.
	check("external.shop.svc.cluster.local.", "NOERROR 198.51.100.9, db.example.com.",
		"db.example.com.[198.51.100.9] external.shop.svc.cluster.local.[198.51.100.9]")
	check("other.org.", "NOERROR", "")
	failure = errors.New("no rules")
	check("db.example.com.", "SERVFAIL", "db.example.com.[198.51.100.9]")
}
