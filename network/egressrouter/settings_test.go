package egressrouter

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var compareAddresses = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})

func redirect(protocol string, port uint16, to string) Redirect {
	return Redirect{protocol, port, netip.MustParseAddrPort(to)}
}

// These values are from the guide.
const guideDestination = `
# Egress routes for Project "Test", version 3

80   tcp 203.0.113.25

8080 tcp 203.0.113.26 80
8443 tcp 203.0.113.26 443

# Fallback
203.0.113.27
`

func TestDestination(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Destination
		wantErr    string
	}{
		{name: "one address", text: "203.0.113.25", want: Destination{Fallback: netip.MustParseAddr("203.0.113.25")}},
		{name: "the guide's file", text: guideDestination, want: Destination{
			Redirects: []Redirect{redirect("tcp", 80, "203.0.113.25:80"), redirect("tcp", 8080, "203.0.113.26:80"), redirect("tcp", 8443, "203.0.113.26:443")},
			Fallback:  netip.MustParseAddr("203.0.113.27"),
		}},
		{name: "no fallback", text: "53 udp 203.0.113.1\n53 tcp 203.0.113.1 5353\r\n", want: Destination{
			Redirects: []Redirect{redirect("udp", 53, "203.0.113.1:53"), redirect("tcp", 53, "203.0.113.1:5353")},
		}},
		{name: "empty", text: "\n# nothing\n", wantErr: "EGRESS_DESTINATION is empty"},
		{name: "fallback first", text: "203.0.113.27\n80 tcp 203.0.113.25", wantErr: `line "203.0.113.27" of EGRESS_DESTINATION: the address for all other ports must be the last line`},
		{name: "host name", text: "80 tcp example.com", wantErr: `"example.com" is not the IPv4 address of a server`},
		{name: "IPv6", text: "80 tcp 2001:db8::1", wantErr: "not the IPv4 address"},
		{name: "protocol", text: "80 sctp 203.0.113.25", wantErr: `protocol "sctp" must be tcp or udp`},
		{name: "port", text: "65536 tcp 203.0.113.25", wantErr: `port "65536" must be a number from 1 to 65535`},
		{name: "remote port", text: "80 tcp 203.0.113.25 http", wantErr: `port "http" must be`},
		{name: "port zero", text: "0 tcp 203.0.113.25", wantErr: `port "0"`},
		{name: "too many fields", text: "80 tcp 203.0.113.25 80 81", wantErr: "must be <port>"},
		{name: "two fields", text: "80 203.0.113.25", wantErr: "must be <port>"},
		{name: "word", text: "nowhere", wantErr: "or one IPv4 address"},
		{name: "loopback", text: "127.0.0.1", wantErr: "or one IPv4 address"},
		{name: "port twice", text: "80 tcp 203.0.113.25\n80 tcp 203.0.113.26", wantErr: "port 80/tcp has two destinations"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseDestination(tt.text)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got %v, error %v, want %q", got, err, tt.wantErr)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got, compareAddresses); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	valid := map[string]string{sourceVariable: "192.168.12.99/24", gatewayVariable: "192.168.12.1", destinationVariable: "203.0.113.25"}
	for _, tt := range []struct {
		name    string
		changes map[string]string
		want    string // source and mode, or a part of the error
	}{
		{"the guide's pod of chapter 7", map[string]string{sourceVariable: "192.168.12.99"}, "192.168.12.99/32 legacy true"},
		{"init container", map[string]string{modeVariable: "init"}, "192.168.12.99/24 init true"},
		{"HTTP proxy", map[string]string{modeVariable: "http-proxy", destinationVariable: ""}, "192.168.12.99/24 http-proxy false"},
		{"DNS proxy", map[string]string{modeVariable: "dns-proxy", destinationVariable: "ignored"}, "192.168.12.99/24 dns-proxy false"},
		{"unknown mode", map[string]string{modeVariable: "proxy"}, `EGRESS_ROUTER_MODE is "proxy", must be init, http-proxy or dns-proxy`},
		{"no source", map[string]string{sourceVariable: ""}, `EGRESS_SOURCE is "", must be an IPv4 address`},
		{"source of IPv6", map[string]string{sourceVariable: "2001:db8::1/64"}, "EGRESS_SOURCE is"},
		{"source with an invalid prefix length", map[string]string{sourceVariable: "192.168.12.99/33"}, "EGRESS_SOURCE is"},
		{"no gateway", map[string]string{gatewayVariable: "router"}, `EGRESS_GATEWAY is "router", must be an IPv4 address`},
		{"the same address", map[string]string{gatewayVariable: "192.168.12.99"}, "EGRESS_SOURCE and EGRESS_GATEWAY are the same address"},
		{"no destination", map[string]string{destinationVariable: ""}, "EGRESS_DESTINATION is empty"},
		{"two errors", map[string]string{sourceVariable: "x", gatewayVariable: "y"}, "EGRESS_GATEWAY is \"y\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := ParseSettings(func(name string) string {
				if value, ok := tt.changes[name]; ok {
					return value
				}
				return valid[name]
			})
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = s.Source.String() + " " + s.Mode + " " + map[bool]string{true: "true", false: "false"}[s.Destination.Fallback.IsValid()]
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTargets(t *testing.T) {
	const guide = `
# Egress routes for Project "Foo", version 5

80  203.0.113.25

100 example.com

8080 203.0.113.26 80

8443 foobar.com 443
`
	want := []Target{{80, "203.0.113.25", 80}, {100, "example.com", 100}, {8080, "203.0.113.26", 80}, {8443, "foobar.com", 443}}
	got, err := ParseTargets(guide)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"":                                  "EGRESS_DNS_PROXY_DESTINATION is empty",
		"80":                                "must be <port> <IPv4 address or DNS name>",
		"80 tcp 203.0.113.25":               `port "203.0.113.25" must be a number`,
		"80 203.0.113":                      "is not the IPv4 address or DNS name",
		"80 300.0.113.1":                    "is not the IPv4 address or DNS name",
		"80 exa_mple..com":                  "is not the IPv4 address or DNS name",
		"80 example.com\n80 203.0.113.25":   "port 80 has two destinations",
		"http example.com":                  `port "http"`,
		"80 2001:db8::1":                    "is not the IPv4 address or DNS name",
		"80 " + strings.Repeat("a.", 130):   "is not the IPv4 address or DNS name",
		"80 " + strings.Repeat("a", 64):     "is not the IPv4 address or DNS name",
		"80 example.com 443 something-else": "must be <port>",
	} {
		if got, err := ParseTargets(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, error %v, want %q", text, got, err, want)
		}
	}
}

func TestInvalidSettingEndsProgram(t *testing.T) {
	none := func(string) string { return "" }
	for name, args := range map[string][]string{
		"EGRESS_SOURCE": nil, httpDestinationVariable: {HTTPProxyCommand}, dnsDestinationVariable: {DNSProxyCommand},
		"unknown command": {"serve"}, "unexpected arguments": {"dns-proxy", "now"},
	} {
		if err := Run(t.Context(), args, none, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("arguments %q: got %v, want %q", args, err, name)
		}
	}
}

// FuzzSettings verifies that every accepted setting is complete.
func FuzzSettings(f *testing.F) {
	f.Add(guideDestination)
	f.Add("80 example.com 443")
	f.Add("!*.example.com\n!192.168.1.0/24\n*")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := ParseDestination(text); err == nil {
			if len(d.Redirects) == 0 && !d.Fallback.IsValid() {
				t.Errorf("no destination in %q", text)
			}
			for _, r := range d.Redirects {
				if r.Port == 0 || r.To.Port() == 0 || !r.To.Addr().Is4() {
					t.Errorf("redirect %v", r)
				}
			}
		}
		if targets, err := ParseTargets(text); err == nil {
			for _, target := range targets {
				if target.Port == 0 || target.RemotePort == 0 || target.Host == "" {
					t.Errorf("target %v", target)
				}
			}
		}
		if access, err := ParseAccess(text); err == nil {
			if len(access) == 0 {
				t.Errorf("no rule in %q", text)
			}
			access.allows("www.example.com", netip.AddrFrom4([4]byte{192, 0, 2, 1}))
		}
	})
}
