package egressrouter

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var compareAddresses = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})

func addresses(list ...string) (result []netip.Addr) {
	for _, address := range list {
		result = append(result, netip.MustParseAddr(address))
	}
	return result
}

func redirect(protocol string, port uint16, to string) Redirect {
	return Redirect{protocol, port, netip.MustParseAddrPort(to)}
}

// guideDestination is an example from the OpenShift guide (see the package documentation).
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
		{name: "one address", text: "203.0.113.25", want: Destination{Fallbacks: addresses("203.0.113.25")}},
		{name: "the guide's file", text: guideDestination, want: Destination{
			Redirects: []Redirect{redirect("tcp", 80, "203.0.113.25:80"), redirect("tcp", 8080, "203.0.113.26:80"), redirect("tcp", 8443, "203.0.113.26:443")},
			Fallbacks: addresses("203.0.113.27"),
		}},
		{name: "no fallback", text: "53 udp 203.0.113.1\n53 tcp 203.0.113.1 5353\r\n", want: Destination{
			Redirects: []Redirect{redirect("udp", 53, "203.0.113.1:53"), redirect("tcp", 53, "203.0.113.1:5353")},
		}},
		{name: "both IP families", text: "80 tcp 203.0.113.25\n80 tcp 2001:db8::25 8080\n203.0.113.27\n2001:db8::27", want: Destination{
			Redirects: []Redirect{redirect("tcp", 80, "203.0.113.25:80"), redirect("tcp", 80, "[2001:db8::25]:8080")},
			Fallbacks: addresses("203.0.113.27", "2001:db8::27"),
		}},
		{name: "empty", text: "\n# nothing\n", wantErr: "EGRESS_DESTINATION is empty"},
		{name: "fallback first", text: "203.0.113.27\n80 tcp 203.0.113.25", wantErr: `line "203.0.113.27" of EGRESS_DESTINATION: the address for all other ports must be the last line`},
		{name: "host name", text: "80 tcp example.com", wantErr: `"example.com" is not the IP address of a server`},
		{name: "link-local address", text: "80 tcp fe80::1", wantErr: "not the IP address"},
		{name: "address with a zone", text: "80 tcp 2001:db8::1%eth0", wantErr: "not the IP address"},
		{name: "mapped address", text: "80 tcp ::ffff:203.0.113.25", wantErr: "not the IP address"},
		{name: "two fallbacks of one family", text: "2001:db8::27\n2001:db8::28", wantErr: "IPv6 has two addresses for all other ports"},
		{name: "protocol", text: "80 sctp 203.0.113.25", wantErr: `protocol "sctp" must be tcp or udp`},
		{name: "port", text: "65536 tcp 203.0.113.25", wantErr: `port "65536" must be a number from 1 to 65535`},
		{name: "remote port", text: "80 tcp 203.0.113.25 http", wantErr: `port "http" must be`},
		{name: "port zero", text: "0 tcp 203.0.113.25", wantErr: `port "0"`},
		{name: "too many fields", text: "80 tcp 203.0.113.25 80 81", wantErr: "must be <port>"},
		{name: "two fields", text: "80 203.0.113.25", wantErr: "must be <port>"},
		{name: "word", text: "nowhere", wantErr: "or one IP address"},
		{name: "loopback", text: "127.0.0.1", wantErr: "or one IP address"},
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
		{"no source", map[string]string{sourceVariable: ""}, `EGRESS_SOURCE is "", must be an IP address`},
		{"IPv6", map[string]string{sourceVariable: "2001:db8::99/64", gatewayVariable: "fe80::1", destinationVariable: "2001:db8:1::25"}, "2001:db8::99/64 legacy true"},
		{"both IP families", map[string]string{
			sourceVariable: "2001:db8::99/64, 192.168.12.99/24", gatewayVariable: "192.168.12.1, 2001:db8::1", destinationVariable: "203.0.113.25\n2001:db8:1::25",
		}, "192.168.12.99/24 2001:db8::99/64 legacy true"},
		{"source without a gateway", map[string]string{sourceVariable: "192.168.12.99/24,2001:db8::99/64"}, "EGRESS_GATEWAY has no IPv6 address"},
		{"gateway without a source", map[string]string{gatewayVariable: "192.168.12.1,2001:db8::1"}, "EGRESS_SOURCE has no IPv6 address for the gateway 2001:db8::1"},
		{"server without a source", map[string]string{destinationVariable: "80 tcp 2001:db8:1::25"}, "EGRESS_SOURCE has no IPv6 address for the server 2001:db8:1::25 of EGRESS_DESTINATION"},
		{"two sources of one family", map[string]string{sourceVariable: "192.168.12.99,192.168.12.98"}, "EGRESS_SOURCE has two IPv4 addresses"},
		{"two gateways of one family", map[string]string{gatewayVariable: "192.168.12.1,192.168.12.2"}, "EGRESS_GATEWAY has two IPv4 addresses"},
		{"link-local source", map[string]string{sourceVariable: "fe80::99/64"}, "EGRESS_SOURCE is"},
		{"gateway with a zone", map[string]string{gatewayVariable: "fe80::1%eth0"}, "EGRESS_GATEWAY is"},
		{"source with an invalid prefix length", map[string]string{sourceVariable: "192.168.12.99/33"}, "EGRESS_SOURCE is"},
		{"no gateway", map[string]string{gatewayVariable: "router"}, `EGRESS_GATEWAY is "router", must be an IP address`},
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
				for _, r := range s.Routes {
					got += r.Source.String() + " "
				}
				got += fmt.Sprint(s.Mode, " ", len(s.Destination.Fallbacks) > 0)
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

9999 2001:db8::25
`
	want := []Target{{80, "203.0.113.25", 80}, {100, "example.com", 100}, {8080, "203.0.113.26", 80}, {8443, "foobar.com", 443}, {9999, "2001:db8::25", 9999}}
	got, err := ParseTargets(guide)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"":                                  "EGRESS_DNS_PROXY_DESTINATION is empty",
		"80":                                "must be <port> <IP address or DNS name>",
		"80 tcp 203.0.113.25":               `port "203.0.113.25" must be a number`,
		"80 203.0.113":                      "is not the IP address or DNS name",
		"80 300.0.113.1":                    "is not the IP address or DNS name",
		"80 exa_mple..com":                  "is not the IP address or DNS name",
		"80 example.com\n80 203.0.113.25":   "port 80 has two destinations",
		"http example.com":                  `port "http"`,
		"80 fe80::1":                        "is not the IP address or DNS name",
		"80 " + strings.Repeat("a.", 130):   "is not the IP address or DNS name",
		"80 " + strings.Repeat("a", 64):     "is not the IP address or DNS name",
		"80 example.com 443 something-else": "must be <port>",
	} {
		if got, err := ParseTargets(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, error %v, want %q", text, got, err, want)
		}
	}
}

func TestProxiesConnectInFamiliesOfTheDevice(t *testing.T) {
	for _, tt := range []struct {
		want      string
		addresses []string
	}{
		{"4", []string{"192.168.12.99/24"}}, {"6", []string{"2001:db8::99/64", "fe80::1/64"}}, {"4", []string{"192.168.12.99/24", "fe80::1/64"}},
		{"", []string{"192.168.12.99/24", "2001:db8::99/64"}}, {"4", nil},
	} {
		var device []net.Addr
		for _, text := range tt.addresses {
			address, network, err := net.ParseCIDR(text)
			if err != nil {
				t.Fatal(err)
			}
			device = append(device, &net.IPNet{IP: address, Mask: network.Mask})
		}
		if got := suffix(device); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.addresses, got, tt.want)
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
			if len(d.servers()) == 0 {
				t.Errorf("no destination in %q", text)
			}
			for _, r := range d.Redirects {
				if r.Port == 0 || r.To.Port() == 0 || !isHost(r.To.Addr()) {
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
