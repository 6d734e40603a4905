package dns

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/miekg/dns"
)

// FuzzAnswer verifies that the rules of egress firewalls receive only addresses from a response's
// records, and no negative TTL.
func FuzzAnswer(f *testing.F) {
	const name = "www.foo.com."
	for _, records := range [][]string{
		{"www.foo.com. 60 IN A 192.0.2.1", "www.foo.com. 30 IN AAAA 2001:db8::1"},
		{"www.foo.com. 60 IN CNAME a.foo.com.", "a.foo.com. 4294967295 IN A 192.0.2.1", "b.foo.com. 1 IN A 192.0.2.2"},
		{"a.foo.com. 60 IN CNAME www.foo.com.", "www.foo.com. 60 IN CNAME a.foo.com.", "www.foo.com. 60 IN TXT x"},
	} {
		m := new(dns.Msg).SetQuestion(name, dns.TypeA)
		for _, text := range records {
			record, err := dns.NewRR(text)
			if err != nil {
				f.Fatal(err)
			}
			m.Answer = append(m.Answer, record)
		}
		packet, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packet, name)
	}
	f.Fuzz(func(t *testing.T, packet []byte, name string) {
		m := new(dns.Msg)
		if m.Unpack(packet) != nil {
			return
		}
		var allowed []netip.Addr
		for _, record := range m.Answer {
			switch record := record.(type) {
			case *dns.A:
				address, _ := netip.AddrFromSlice(record.A)
				allowed = append(allowed, address.Unmap())
			case *dns.AAAA:
				address, _ := netip.AddrFromSlice(record.AAAA)
				allowed = append(allowed, address.Unmap())
			}
		}
		addresses, ttl := addressesOf(name, m)
		for _, address := range addresses {
			if !address.IsValid() || !slices.Contains(allowed, address) {
				t.Errorf("%v: address %s", m, address)
			}
		}
		if ttl < 0 {
			t.Errorf("%v: TTL %s", m, ttl)
		}
	})
}
