package dns

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// shop adds the tests' services to an API.
func shop(a *api) {
	a.add(namespacesPath, namespace("shop"))
	a.add(servicesPath, service("web", "172.30.0.10", port("http", 80)))
	a.add(slicesPath, slice("web", 8080, endpoint("10.128.0.5", "", true), endpoint("10.128.0.6", "", true), endpoint("10.128.0.7", "", false)))
	a.add(servicesPath, service("db", "None", port("http", 80)))
	a.add(slicesPath, slice("db", 5432, endpoint("10.128.0.8", "db-0", true), endpoint("10.128.0.9", "db-1", true)))
	a.add(servicesPath, service("empty", "172.30.0.11", port("http", 80)))
	a.add(servicesPath, service("legacy", "172.30.0.12", port("http", 80)))
	// Add the EndpointSlice that mirrors manually created Endpoints.
	a.add(slicesPath, slice("legacy", 1521, endpoint("192.0.2.44", "", true)))
	a.add(servicesPath, service("external", ""))
	a.add(namespacesPath, namespace("default"))
	kubernetes := service("kubernetes", "172.30.0.1", port("https", 443))
	kubernetes.Namespace = "default"
	a.add(servicesPath, kubernetes)
}

// freeAddress returns an address on the loopback device with a port that is free on both UDP and
// TCP.
func freeAddress(t *testing.T) string {
	t.Helper()
	packets, listener := listenBoth(t, "127.0.0.1:0")
	defer packets.Close()
	defer listener.Close()
	return packets.LocalAddr().String()
}

// listenBoth listens on an address on both UDP and TCP. If the port is 0, it finds a port that is
// free on both.
func listenBoth(t *testing.T, address string) (packets net.PacketConn, listener net.Listener) {
	t.Helper()
	const attempts = 100
	for range attempts {
		var err error
		if listener, err = net.Listen("tcp4", address); err != nil {
			t.Fatal(err)
		}
		if packets, err = net.ListenPacket("udp4", listener.Addr().String()); err == nil {
			return packets, listener
		}
		listener.Close()
		if !strings.HasSuffix(address, ":0") {
			t.Fatal(err)
		}
	}
	t.Fatalf("no port is free for UDP and TCP in %d attempts", attempts)
	return nil, nil
}

// query returns the response code and the sorted records of a response, without their names and
// classes.
func query(t *testing.T, network, server, kind, name string) string {
	t.Helper()
	client := dns.Client{Net: network, Timeout: 5 * time.Second}
	question := new(dns.Msg).SetQuestion(name, dns.StringToType[kind])
	resp, _, err := client.Exchange(question, server)
	if err != nil {
		return err.Error()
	}
	var records []string
	for _, record := range resp.Answer {
		text := strings.TrimPrefix(record.String(), record.Header().String())
		if got := record.Header().Name; got != name && !strings.HasSuffix(got, "example.com.") {
			text += " (for " + got + ")"
		}
		records = append(records, text)
	}
	slices.Sort(records)
	return strings.TrimSpace(dns.RcodeToString[resp.Rcode] + " " + strings.Join(records, ", "))
}

func TestNames(t *testing.T) {
	api, config := newAPI(t)
	shop(api)
	upstream := resolver(t, nil)
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, Upstreams: []string{upstream}}
	componenttest.Run(t, server.Run)

	for _, test := range []struct{ name, kind, want string }{
		// Kubernetes
		{"web.shop.svc.cluster.local.", "A", "NOERROR 172.30.0.10"},
		{"WEB.shop.svc.Cluster.Local.", "A", "NOERROR 172.30.0.10"},
		{"web.shop.svc.cluster.local.", "AAAA", "NOERROR"},
		{"_http._tcp.web.shop.svc.cluster.local.", "SRV", "NOERROR 0 100 80 web.shop.svc.cluster.local."},
		{"db.shop.svc.cluster.local.", "A", "NOERROR 10.128.0.8, 10.128.0.9"},
		{"db-0.db.shop.svc.cluster.local.", "A", "NOERROR 10.128.0.8"},
		{"10-128-0-5.shop.pod.cluster.local.", "A", "NOERROR 10.128.0.5"},
		{"10.0.30.172.in-addr.arpa.", "PTR", "NOERROR web.shop.svc.cluster.local."},
		{"external.shop.svc.cluster.local.", "A", "NOERROR 198.51.100.9, db.example.com."},
		{"nothing.shop.svc.cluster.local.", "A", "NXDOMAIN"},
		{"web.nowhere.svc.cluster.local.", "A", "NXDOMAIN"},
		{"cluster.local.", "SOA", "NOERROR ns.dns.cluster.local. hostmaster.cluster.local."},
		// OpenShift: names without the svc label
		{"web.shop.cluster.local.", "A", "NOERROR 172.30.0.10"},
		{"db.shop.cluster.local.", "A", "NOERROR 10.128.0.8, 10.128.0.9"},
		{"shop.cluster.local.", "A", "NOERROR"},
		{"nothing.shop.cluster.local.", "A", "NXDOMAIN"},
		{"nowhere.cluster.local.", "A", "NXDOMAIN"},
		// OpenShift: second name of the API server
		{"openshift.default.svc.cluster.local.", "A", "NOERROR 172.30.0.1"},
		{"openshift.default.cluster.local.", "A", "NOERROR 172.30.0.1"},
		{"openshift.shop.svc.cluster.local.", "A", "NXDOMAIN"},
		// OpenShift: wildcards
		{"any.thing.web.shop.svc.cluster.local.", "A", "NOERROR 172.30.0.10"},
		{"anything.web.shop.svc.cluster.local.", "A", "NOERROR 172.30.0.10"},
		{"anything.web.shop.cluster.local.", "A", "NOERROR 172.30.0.10"},
		{"10-128-0-5.web.shop.svc.cluster.local.", "A", "NOERROR 10.128.0.5"},
		{"anything.db.shop.svc.cluster.local.", "A", "NXDOMAIN"},
		{"anything.nothing.shop.svc.cluster.local.", "A", "NXDOMAIN"},
		// OpenShift: endpoints
		{"web.shop.endpoints.cluster.local.", "A", "NOERROR 10.128.0.5, 10.128.0.6"},
		{"web.shop.endpoints.cluster.local.", "AAAA", "NOERROR"},
		{"web.shop.endpoints.cluster.local.", "MX", "NOERROR"},
		{"legacy.shop.endpoints.cluster.local.", "A", "NOERROR 192.0.2.44"},
		{"empty.shop.endpoints.cluster.local.", "A", "NOERROR"},
		{"db-1.db.shop.endpoints.cluster.local.", "A", "NOERROR 10.128.0.9"},
		{"10-128-0-6.web.shop.endpoints.cluster.local.", "A", "NOERROR 10.128.0.6"},
		{"legacy.shop.endpoints.cluster.local.", "SRV", "NOERROR 0 100 1521 192-0-2-44.legacy.shop.endpoints.cluster.local."},
		{"_http._tcp.legacy.shop.endpoints.cluster.local.", "SRV", "NOERROR 0 100 1521 192-0-2-44.legacy.shop.endpoints.cluster.local."},
		{"_other._tcp.legacy.shop.endpoints.cluster.local.", "SRV", "NXDOMAIN"},
		{"nothing.shop.endpoints.cluster.local.", "A", "NXDOMAIN"},
		{"shop.endpoints.cluster.local.", "A", "NOERROR"},
		{"nowhere.endpoints.cluster.local.", "A", "NXDOMAIN"},
		{"_endpoints.web.shop.svc.cluster.local.", "A", "NOERROR 10.128.0.5, 10.128.0.6"},
		{"_endpoints.web.shop.cluster.local.", "A", "NOERROR 10.128.0.5, 10.128.0.6"},
		{"_endpoints.web.shop.endpoints.cluster.local.", "A", "NOERROR 10.128.0.5, 10.128.0.6"},
		{"_endpoints.db.shop.svc.cluster.local.", "A", "NOERROR 10.128.0.8, 10.128.0.9"},
		{"_endpoints.legacy.shop.svc.cluster.local.", "SRV", "NOERROR 0 100 1521 192-0-2-44.legacy.shop.endpoints.cluster.local."},
		{"_http._tcp._endpoints.legacy.shop.svc.cluster.local.", "SRV", "NOERROR 0 100 1521 192-0-2-44.legacy.shop.endpoints.cluster.local."},
		{"_other._tcp._endpoints.legacy.shop.svc.cluster.local.", "SRV", "NXDOMAIN"},
		{"_endpoints.nothing.shop.svc.cluster.local.", "A", "NXDOMAIN"},
		{"_http._tcp.web.shop.svc.cluster.local.", "SRV", "NOERROR 0 100 80 web.shop.svc.cluster.local."},
		{"_http._tcp.web.shop.cluster.local.", "SRV", "NOERROR 0 100 80 web.shop.svc.cluster.local."},
		// upstream
		{"db.example.com.", "A", "NOERROR 198.51.100.9"},
		{"1.100.51.198.in-addr.arpa.", "PTR", "NOERROR host.example.com."},
	} {
		for _, network := range []string{"udp", "tcp"} {
			got := query(t, network, server.Address, test.kind, test.name)
			if test.kind == "SOA" {
				got = strings.Join(strings.Fields(got)[:3], " ") // remove the serial number and the times
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s %s over %s (-want +got):\n%s", test.kind, test.name, network, diff)
			}
		}
	}
}

// TestEndpointsDoNotNameForeignAddresses checks that a user's endpoints do not give an address
// outside the cluster a name. The service "legacy" has such endpoints.
func TestEndpointsDoNotNameForeignAddresses(t *testing.T) {
	api, config := newAPI(t)
	shop(api)
	networks := []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("172.30.0.0/16")}
	upstream := resolver(t, func(q *dns.Msg) *dns.Msg {
		m := new(dns.Msg).SetReply(q)
		if rr, err := dns.NewRR(q.Question[0].Name + " 60 IN PTR host.example.com."); err == nil && q.Question[0].Qtype == dns.TypePTR {
			m.Answer = append(m.Answer, rr)
		}
		return m
	})
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, Upstreams: []string{upstream}, Networks: networks}
	componenttest.Run(t, server.Run)
	for name, want := range map[string]string{
		"44.2.0.192.in-addr.arpa.":  "NOERROR host.example.com.",
		"10.0.30.172.in-addr.arpa.": "NOERROR web.shop.svc.cluster.local.",
		"8.0.128.10.in-addr.arpa.":  "NOERROR db-0.db.shop.svc.cluster.local.",
	} {
		if got := query(t, "udp", server.Address, "PTR", name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestServerOfClusterNamesForwardsNoQueries(t *testing.T) {
	api, config := newAPI(t)
	shop(api)
	var forwarded atomic.Int64
	upstream := resolver(t, func(q *dns.Msg) *dns.Msg {
		forwarded.Add(1)
		return new(dns.Msg).SetReply(q)
	})
	server := &Server{Part: "master-dns", Address: freeAddress(t), Domain: "cluster.local", Config: config, Upstreams: []string{upstream}, ClusterOnly: true}
	componenttest.Run(t, server.Run)
	for name, want := range map[string]string{
		"web.shop.svc.cluster.local.":            "NOERROR 172.30.0.10",
		"_endpoints.web.shop.svc.cluster.local.": "NOERROR 10.128.0.5, 10.128.0.6",
		"db.example.com.":                        "REFUSED",
		"9.9.9.9.in-addr.arpa.":                  "REFUSED",
	} {
		if got := query(t, "udp", server.Address, "A", name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := forwarded.Load(); got > 0 || server.Name() != "master-dns" {
		t.Errorf("%s forwarded %d queries", server.Name(), got)
	}
}

// TestServerOfClusterNamesDoesNotAmplify simulates an attacker who queries a large service with a
// victim's forged address, to direct large responses to the victim.
func TestServerOfClusterNamesDoesNotAmplify(t *testing.T) {
	api, config := newAPI(t)
	api.add(namespacesPath, namespace("shop"))
	api.add(servicesPath, service("large", corev1.ClusterIPNone, port("http", 80)))
	var endpoints []discoveryv1.Endpoint
	for i := range 1000 {
		endpoints = append(endpoints, endpoint(fmt.Sprintf("10.128.%d.%d", i/250, 1+i%250), "", true))
	}
	api.add(slicesPath, slice("large", 80, endpoints...))
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, ClusterOnly: true}
	componenttest.Run(t, server.Run)
	query := new(dns.Msg).SetQuestion("large.shop.svc.cluster.local.", dns.TypeA).SetEdns0(dns.MaxMsgSize-1, false)
	response, _, err := (&dns.Client{Net: "udp", UDPSize: dns.MaxMsgSize - 1}).Exchange(query, server.Address)
	if err != nil {
		t.Fatal(err)
	}
	response.Compress = true // so that Len returns the size on the wire
	if !response.Truncated || response.Len() > maxDatagram {
		t.Errorf("the response has %d bytes", response.Len())
	}
	response, _, err = (&dns.Client{Net: "tcp"}).Exchange(query, server.Address)
	if err != nil || len(response.Answer) != 1000 {
		t.Errorf("over TCP, the response has %d records, %v", len(response.Answer), err)
	}
}

func TestSRVRecordsHaveTheFormOfOpenShift3(t *testing.T) {
	api, config := newAPI(t)
	shop(api)
	api.add(servicesPath, service("plain", "None", port("http", 80)))
	api.add(slicesPath, slice("plain", 80, endpoint("10.1.2.3", "", true), endpoint("10.1.2.4", "test2", true)))
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, Upstreams: []string{"127.0.0.1:1"}, ClusterOnly: true, OldSRV: true}
	componenttest.Run(t, server.Run)
	for _, tt := range []struct{ name, kind, want string }{
		{"plain.shop.svc.cluster.local.", "SRV", "NOERROR 10 50 0 3987d90a.plain.shop.svc.cluster.local., 10 50 0 test2.plain.shop.svc.cluster.local."},
		{"test2.plain.shop.svc.cluster.local.", "SRV", "NOERROR 10 100 0 test2.plain.shop.svc.cluster.local."},
		{"_http._tcp.plain.shop.svc.cluster.local.", "SRV", "NOERROR 10 50 80 3987d90a.plain.shop.svc.cluster.local., 10 50 80 test2.plain.shop.svc.cluster.local."},
		{"_http._udp.plain.shop.svc.cluster.local.", "SRV", "NXDOMAIN"},
		{"3987d90a.plain.shop.svc.cluster.local.", "SRV", "NOERROR 10 100 0 3987d90a.plain.shop.svc.cluster.local."},
		{"3987d90a.plain.shop.svc.cluster.local.", "A", "NOERROR 10.1.2.3"},
		{"test2.plain.shop.svc.cluster.local.", "A", "NOERROR 10.1.2.4"},
		{"web.shop.svc.cluster.local.", "SRV", "NOERROR 10 100 0 f718f41b.web.shop.svc.cluster.local."},
		{"web.shop.cluster.local.", "SRV", "NOERROR 10 100 0 f718f41b.web.shop.svc.cluster.local."},
		{"_http._tcp.web.shop.svc.cluster.local.", "SRV", "NOERROR 10 100 80 f718f41b.web.shop.svc.cluster.local."},
		{"_other._tcp.web.shop.svc.cluster.local.", "SRV", "NOERROR 10 100 0 f718f41b.web.shop.svc.cluster.local."},
		{"f718f41b.web.shop.svc.cluster.local.", "A", "NOERROR 172.30.0.10"},
		{"nothing.shop.svc.cluster.local.", "SRV", "NXDOMAIN"},
		{"external.shop.svc.cluster.local.", "SRV", "NOERROR"},
	} {
		if got := query(t, "udp", server.Address, tt.kind, tt.name); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.kind, tt.name, got, tt.want)
		}
	}
}

func TestEveryAddressIncludesIPv6UnlessExcluded(t *testing.T) {
	api, config := newAPI(t)
	shop(api)
	for _, only := range []bool{false, true} {
		t.Run(fmt.Sprint(only), func(t *testing.T) {
			_, port, err := net.SplitHostPort(freeAddress(t))
			if err != nil {
				t.Fatal(err)
			}
			server := &Server{Address: "0.0.0.0:" + port, OnlyIPv4: only, Domain: "cluster.local", Config: config, ClusterOnly: true}
			componenttest.Run(t, server.Run)
			for _, network := range []string{"udp", "tcp"} {
				if got := query(t, network, "127.0.0.1:"+port, "A", "web.shop.svc.cluster.local."); got != "NOERROR 172.30.0.10" {
					t.Errorf("over IPv4: %s", got)
				}
				query := new(dns.Msg).SetQuestion("web.shop.svc.cluster.local.", dns.TypeA)
				response, _, err := (&dns.Client{Net: network}).Exchange(query, "[::1]:"+port)
				if err != nil != only {
					t.Errorf("over IPv6: %v, %v", response, err)
				}
			}
		})
	}
}

func TestNewService(t *testing.T) {
	api, config := newAPI(t)
	shop(api)
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, Upstreams: []string{"127.0.0.1:1"}}
	componenttest.Run(t, server.Run)
	if got := query(t, "udp", server.Address, "A", "late.shop.svc.cluster.local."); got != "NXDOMAIN" {
		t.Errorf("before: %s", got)
	}
	api.add(servicesPath, service("late", "172.30.0.99", port("http", 80)))
	waitForResponse(t, server.Address, "late.shop.svc.cluster.local.", "NOERROR 172.30.0.99")
}

func TestReadyAfterFirstList(t *testing.T) {
	api, config := newAPI(t)
	shop(api)
	api.setDown(true)
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, Upstreams: []string{resolver(t, nil)}}
	component := componenttest.Start(t, server.Run)
	waitForResponse(t, server.Address, "db.example.com.", "NOERROR 198.51.100.9")
	if got := query(t, "udp", server.Address, "A", "web.shop.svc.cluster.local."); got != "SERVFAIL" {
		t.Errorf("without the API: %s", got)
	}
	if component.Ready() {
		t.Error("ready without the API")
	}
	api.setDown(false)
	waitForResponse(t, server.Address, "web.shop.svc.cluster.local.", "NOERROR 172.30.0.10")
	component.WaitReady()
}

func TestRestartInSameProcess(t *testing.T) {
	api, config := newAPI(t)
	shop(api)
	address := freeAddress(t)
	for range 3 {
		server := &Server{Address: address, Domain: "cluster.local", Config: config, Upstreams: []string{"127.0.0.1:1"}}
		component := componenttest.Run(t, server.Run)
		if got := query(t, "tcp", address, "A", "web.shop.svc.cluster.local."); got != "NOERROR 172.30.0.10" {
			t.Error(got)
		}
		component.Stop()
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			t.Error("a stopped server accepts connections")
		}
	}
}

func TestUpstreamFollowsResolvConf(t *testing.T) {
	_, config := newAPI(t)
	file := filepath.Join(t.TempDir(), "resolv.conf")
	server := &Server{Address: freeAddress(t), Domain: "cluster.local", Config: config, ResolvConf: file}
	componenttest.Run(t, server.Run)
	if got := query(t, "udp", server.Address, "A", "db.example.com."); got != "SERVFAIL" {
		t.Errorf("without a file: %s", got)
	}
	resolverAt(t, "127.0.0.77:53", nil)
	if err := os.WriteFile(file, []byte("nameserver 127.0.0.77\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	waitForResponse(t, server.Address, "db.example.com.", "NOERROR 198.51.100.9")
}

func TestResolvConf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	u, err := newUpstreams("127.0.0.1:53", nil, file)
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string][]string{
		"":                                   nil,
		"search example.com\n":               nil,
		"nameserver 127.0.0.1\n":             nil, // this server's own address
		"nameserver 127.0.0.53\n":            {"127.0.0.53:53"},
		"nameserver ::1\nnameserver 9.9.9.9": {"[::1]:53", "9.9.9.9:53"},
	} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := u.servers()
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", content, diff)
		}
	}
}

func TestForwardingLoopIsDetected(t *testing.T) {
	_, config := newAPI(t)
	address := freeAddress(t)
	good := resolver(t, nil)
	var mirrored atomic.Int64
	mirror := resolver(t, func(q *dns.Msg) *dns.Msg {
		if strings.HasSuffix(q.Question[0].Name, ".example.com.") {
			mirrored.Add(1)
		}
		resp, err := dns.Exchange(q, address)
		if err != nil {
			return nil
		}
		return resp
	})
	server := &Server{Address: address, Domain: "cluster.local", Config: config, Upstreams: []string{mirror, good}}
	componenttest.Run(t, server.Run)
	waitForResponse(t, address, "db.example.com.", "NOERROR 198.51.100.9")
	for i := range 20 {
		if got := query(t, "udp", address, "A", fmt.Sprintf("host-%d.example.com.", i)); got != "NOERROR 198.51.100.9" {
			t.Errorf("query %d: %s", i, got)
		}
	}
	if got := mirrored.Load(); got > 0 {
		t.Errorf("%d queries looped", got)
	}
}

func TestInvalidSettings(t *testing.T) {
	_, config := newAPI(t)
	for want, server := range map[string]*Server{
		`parse address "nowhere"`:         {Address: "nowhere", Domain: "cluster.local", Config: config},
		`parse cluster domain "."`:        {Address: "127.0.0.1:0", Domain: "", Config: config},
		`parse upstream resolver "a.b:5"`: {Address: "127.0.0.1:0", Domain: "cluster.local", Config: config, Upstreams: []string{"a.b:5"}},
		`listen on 192.0.2.77:53/tcp`:     {Address: "192.0.2.77:53", Domain: "cluster.local", Config: config},
		`configuration is missing`:        {Address: "127.0.0.1:0", Domain: "cluster.local"},
	} {
		err := server.Run(t.Context(), func() { t.Error("ready") })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// resolver runs an upstream resolver. By default, it returns one address for every name in
// example.com.
func resolver(t *testing.T, resp func(*dns.Msg) *dns.Msg) (address string) {
	t.Helper()
	return resolverAt(t, "127.0.0.1:0", resp)
}

func resolverAt(t *testing.T, listen string, resp func(*dns.Msg) *dns.Msg) (address string) {
	t.Helper()
	if resp == nil {
		resp = func(q *dns.Msg) *dns.Msg {
			m := new(dns.Msg).SetReply(q)
			record := q.Question[0].Name + " 60 IN A 198.51.100.9"
			if q.Question[0].Qtype == dns.TypePTR {
				record = q.Question[0].Name + " 60 IN PTR host.example.com."
			}
			if rr, err := dns.NewRR(record); err == nil && strings.Contains(record, "example.com.") {
				m.Answer = append(m.Answer, rr)
			}
			return m
		}
	}
	packets, listener := listenBoth(t, listen)
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		if m := resp(q); m != nil {
			_ = w.WriteMsg(m)
		}
	})
	for _, server := range []*dns.Server{{PacketConn: packets, Handler: handler}, {Listener: listener, Handler: handler}} {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		go func() { _ = server.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { _ = server.Shutdown() })
	}
	return packets.LocalAddr().String()
}

// waitForResponse waits until the server returns the wanted response to a query for a name's A
// records.
func waitForResponse(t *testing.T, server, name, want string) {
	t.Helper()
	eventually.Equal(t, "response for "+name, func() string { return query(t, "udp", server, "A", name) }, want)
}
