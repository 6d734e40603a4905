package attack

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

// port is a port on the host, with the expected responses to anonymous callers.
type port struct {
	// address is the address on which the process listens. "*" means all of the host's addresses,
	// so pods can reach the port.
	address string
	number  int
	use     string
	// responses maps URLs to the expected status and the beginning of the expected body, such as
	// "401 Unauthorized". "closed" means that the connection is closed without an HTTP response.
	responses map[string]string
}

// ports returns all ports on which a host listens with the default configuration, and the port in
// dnsConfig. The test fails if a process listens on any other port.
func ports() []port {
	return []port{
		{"*", 8443, "API and OAuth server", map[string]string{"https:///api/v1/secrets": "403", "https:///metrics": "403", "https:///debug/pprof/": "403", "https:///livez": "200 ok"}},
		{"*", 5000, "registry", map[string]string{"https:///v2/": "401", "https:///v2/_catalog": "401", "https:///debug/pprof/": "404", "https:///metrics": "404", "https:///healthz": "200"}},
		{"*", 10250, "kubelet", map[string]string{"https:///pods": "401", "https:///metrics": "401", "https:///healthz": "401", "https:///configz": "401"}},
		{"*", 80, "router", map[string]string{"http:///": "503"}},
		{"*", 443, "router", map[string]string{"https:///": "503"}},
		{"*", 1936, "health of the router", map[string]string{
			"http:///healthz": "200 ok", "http:///healthz/ready": "200 ok", "http:///metrics": "403", "http:///": "403", "http:///;csv": "403", "http:///debug/pprof/": "403",
		}},
		{"*", 8053, "DNS of the master, which does not support HTTP", nil},
		{"127.0.0.1", 2379, "etcd", map[string]string{"https:///v2/keys": "closed", "http:///version": "closed"}},
		{"127.0.0.1", 2380, "etcd's peers", map[string]string{"https:///members": "closed", "http:///version": "closed"}},
		{"127.0.0.1", 10256, "health of the service proxy", map[string]string{"http:///healthz": "200", "http:///livez": "200", "http:///metrics": "404", "http:///configz": "404", "http:///debug/pprof/": "404"}},
		{"169.254.20.10", 53, "DNS, which does not support HTTP", nil},
	}
}

// anyPorts describes the ports whose numbers the kernel selects: containerd's streaming port for
// commands in containers, and the port for connections to idled services. The URLs of containerd's
// port contain a secret. The other port closes all connections except connections to idled
// services.
func anyPorts(number int) (port, bool) {
	return port{"", number, "a port that the kernel selected", map[string]string{"http:///": "4 or closed", "http:///exec/guess": "4 or closed"}}, number >= 32768
}

func TestPortsOfHostRequireLogin(t *testing.T) {
	s := tenants(t)
	exists := ports()
	for _, listener := range s.listeners(t) {
		number := int(listener.Port())
		i := slices.IndexFunc(exists, func(p port) bool {
			return p.number == number && (p.address == "*" && listener.Addr().IsUnspecified() || p.address == listener.Addr().String())
		})
		port, ok := anyPorts(number)
		if i >= 0 {
			port = exists[i]
		}
		if i < 0 && !ok {
			t.Errorf("the host listens on %s, which is not in the table of this test", listener)
			continue
		}
		address := listener.Addr()
		if address.IsUnspecified() {
			address = s.Address
		}
		for url, want := range port.responses {
			got := s.anonymous(strings.Replace(url, "://", "://"+net.JoinHostPort(address.String(), strconv.Itoa(number)), 1))
			prefix, orClosed := strings.CutSuffix(want, " or closed")
			if !strings.HasPrefix(got, prefix) && !(orClosed && got == "closed") {
				t.Errorf("%s (%s), %s: an anonymous caller gets %q, want %q", listener, port.use, url, got, want)
			}
		}
	}
}

func TestPodReachesNoLoopbackPortOfHost(t *testing.T) {
	s := tenants(t)
	s.mallory.May("POST", kit.CorePath(s.evil, "pods"), "{apiVersion: v1, kind: Pod, metadata: {name: scanner}, spec: {terminationGracePeriodSeconds: 1, containers: ["+container("exec sleep infinity")+"]}}")
	evil := s.In(s.evil)
	evil.WaitPodRunning("scanner")
	for _, p := range ports() {
		if p.number == 53 {
			continue // pods send their DNS queries to this port
		}
		_, err := evil.TryOC("exec", "scanner", "--", "sh", "-c", fmt.Sprintf("timeout 3 nc %s %d </dev/null", s.Address, p.number))
		// Check only for a refused connection, because other errors occur after the connection has
		// been established.
		refused := err != nil && strings.Contains(err.Error(), "refused")
		if refused == (p.address == "*") {
			t.Errorf("port %d (%s): a pod is rejected: %t (%v)", p.number, p.use, refused, err)
		}
	}
}

// listeners returns the addresses in the host's network namespace on which processes accept TCP
// connections.
func (s *stage) listeners(t *testing.T) (addrPorts []netip.AddrPort) {
	t.Helper()
	for _, file := range []string{"tcp", "tcp6"} {
		var content []byte
		err := s.Do(func() (err error) {
			content, err = os.ReadFile("/proc/thread-self/net/" + file)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line)
			const listens = "0A"
			if len(fields) < 4 || fields[3] != listens {
				continue
			}
			address, err := socketAddress(fields[1])
			if err != nil {
				t.Fatalf("read %s: %v", file, err)
			}
			addrPorts = append(addrPorts, address)
		}
	}
	if len(addrPorts) < len(ports())/2 {
		t.Fatalf("only %v listen", addrPorts)
	}
	return addrPorts
}

// socketAddress parses an address in the kernel's format: words in host byte order, and a port.
func socketAddress(text string) (netip.AddrPort, error) {
	host, number, _ := strings.Cut(text, ":")
	bytes, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for i := 0; i+4 <= len(bytes); i += 4 {
		slices.Reverse(bytes[i : i+4])
	}
	address, ok := netip.AddrFromSlice(bytes)
	port, err := strconv.ParseUint(number, 16, 16)
	if err != nil || !ok {
		return netip.AddrPort{}, fmt.Errorf("%q is not an address", text)
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(port)), nil
}

// anonymous requests a page without credentials. It returns the status and the beginning of the
// body.
func (s *stage) anonymous(url string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: s.Dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	response, err := client.Do(request)
	if err != nil {
		return "closed"
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, 200))
	if err != nil {
		return "closed"
	}
	return fmt.Sprint(response.StatusCode, " ", string(content))
}
