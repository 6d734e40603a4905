package egressrouter

import (
	"net/netip"
	"strings"
	"testing"
)

func TestAccess(t *testing.T) {
	const guide = "!*.example.com\n!192.168.1.0/24\n*"
	for _, tt := range []struct {
		name, rules, host, address string
		want                       bool
	}{
		{"the guide's rules: other server", guide, "www.example.org", "203.0.113.1", true},
		{"the guide's rules: domain", guide, "example.com", "203.0.113.1", false},
		{"the guide's rules: subdomain", guide, "a.b.example.com", "203.0.113.1", false},
		{"the guide's rules: subdomain in other case, with a dot", guide, "A.B.Example.COM.", "203.0.113.1", false},
		{"the guide's rules: similar name", guide, "notexample.com", "203.0.113.1", true},
		{"the guide's rules: network", guide, "192.168.1.1", "192.168.1.1", false},
		{"the guide's rules: name in the network", guide, "intranet.example.org", "192.168.1.77", false},
		{"address", "192.168.1.1", "192.168.1.1", "192.168.1.1", true},
		{"other address", "192.168.1.1", "192.168.1.2", "192.168.1.2", false},
		{"name of an address", "192.168.1.1", "one.example.com", "192.168.1.1", true},
		{"network", "192.168.1.0/24", "192.168.1.200", "192.168.1.200", true},
		{"host name", "www.example.com", "www.example.com", "203.0.113.1", true},
		{"below a host name", "www.example.com", "a.www.example.com", "203.0.113.1", false},
		{"above a host name", "www.example.com", "example.com", "203.0.113.1", false},
		{"address of a host name", "www.example.com", "203.0.113.1", "203.0.113.1", false},
		{"not denied, not allowed", "!www.example.com", "example.org", "203.0.113.1", false},
		{"exception first", "!secret.example.com\n*.example.com", "secret.example.com", "203.0.113.1", false},
		{"exception first, others", "!secret.example.com\n*.example.com", "www.example.com", "203.0.113.1", true},
		{"the first rule decides", "*.example.com\n!secret.example.com", "secret.example.com", "203.0.113.1", true},
		{"all", "# all\n\n*", "example.org", "203.0.113.1", true},
		{"metadata service", "*", "169.254.169.254", "169.254.169.254", false},
		{"name of the metadata service", "*.example.com\n*", "meta.example.com", "169.254.169.254", false},
		{"address of the metadata service", "169.254.169.254", "169.254.169.254", "169.254.169.254", true},
		{"denied name of the metadata service", "!meta.example.com\n169.254.0.0/16", "meta.example.com", "169.254.169.254", false},
		{"IPv6 address", "2001:db8::1", "2001:db8::1", "2001:db8::1", true},
		{"IPv6 network", "!2001:db8:1::/48\n2001:db8::/32", "www.example.com", "2001:db8:1::1", false},
		{"another IPv6 network", "!2001:db8:1::/48\n2001:db8::/32", "www.example.com", "2001:db8:2::1", true},
		{"IPv6 link-local address", "*", "fe80::1", "fe80::1", false},
		{"none", "!*", "example.org", "203.0.113.1", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			access, err := ParseAccess(tt.rules)
			if err != nil {
				t.Fatal(err)
			}
			if got := access.allows(tt.host, netip.MustParseAddr(tt.address)); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

func TestAccessErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "EGRESS_HTTP_PROXY_DESTINATION is empty",
		"*\nexample.com":       `line "*" of EGRESS_HTTP_PROXY_DESTINATION: must be the last line`,
		"http://example.com":   "must be an IP address, a network, a host name",
		"example.com:80":       "must be an IP address",
		"192.168.1.0/33":       "must be an IP address",
		"192.168.1":            "must be an IP address",
		"2001:db8::1%eth0":     "must be an IP address",
		"::ffff:192.0.2.0/120": "must be an IP address",
		"www.*.example.com":    "must be an IP address",
		"!":                    "must be an IP address",
		"!!example.com":        "must be an IP address",
		"one.com two.com":      "must be an IP address",
		"-leading.example.com": "must be an IP address",
	} {
		if _, err := ParseAccess(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
