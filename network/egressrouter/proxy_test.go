package egressrouter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// newClient serves a proxy with the given rules, and returns a client that uses it. The names in
// the example domains resolve to the address of the test servers.
func newClient(t *testing.T, rules string) *http.Client {
	t.Helper()
	access, err := ParseAccess(rules)
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(access, "4", slog.New(slog.DiscardHandler))
	p.lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if address, err := netip.ParseAddr(host); err == nil {
			return []netip.Addr{address}, nil
		}
		if strings.HasSuffix(host, "example.com") {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return nil, errors.New("no such host")
	}
	listener := listen(t)
	componenttest.Run(t, func(ctx context.Context, ready func()) error {
		ready()
		return serveHTTP(ctx, listener, p)
	})
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: listener.Addr().String()})}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// get requests an address, and returns the status code and the body of the response.
func get(client *http.Client, address string) (int, string) {
	resp, err := client.Get(address)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

func TestHTTPProxyForwardsAllowedRequests(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s %q %q", r.Method, r.Host, r.URL, r.Header.Values("X-Forwarded-For"), r.Header.Values("Proxy-Connection"))
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	client := newClient(t, "!secret.example.com\n*.example.com")
	status, body := get(client, "http://www.example.com:"+port+"/path?q=1")
	if want := "GET www.example.com:" + port + ` /path?q=1 [] []`; status != http.StatusOK || body != want {
		t.Errorf("got %d, %q, want %q", status, body, want)
	}
	for _, denied := range []string{"http://secret.example.com:" + port, "http://127.0.0.1:" + port, "http://unknown.example.org"} {
		if status, body := get(client, denied); status != http.StatusForbidden || !strings.Contains(body, errDenied.Error()) {
			t.Errorf("%s: got %d, %q", denied, status, body)
		}
	}
}

func TestHTTPProxyTunnelsAllowedConnections(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "secure ", r.Host) }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	client := newClient(t, "!127.0.0.2\nexample.com\n127.0.0.0/8")
	client.Transport.(*http.Transport).TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	if status, body := get(client, "https://example.com:"+port); status != http.StatusOK || body != "secure example.com:"+port {
		t.Errorf("got %d, %q", status, body)
	}
	if status, body := get(client, "https://127.0.0.2:"+port); status != 0 || !strings.Contains(body, "Forbidden") {
		t.Errorf("denied address: got %d, %q", status, body)
	}
}

func TestHTTPProxyReportsFailures(t *testing.T) {
	client := newClient(t, "*")
	listener := listen(t)
	address := listener.Addr().String()
	listener.Close()
	if status, body := get(client, "http://"+address); status != http.StatusBadGateway || !strings.Contains(body, "connect to "+address) {
		t.Errorf("server that is down: got %d, %q", status, body)
	}
	if status, body := get(client, "http://unknown.example.org"); status != http.StatusBadGateway || !strings.Contains(body, "no such host") {
		t.Errorf("unknown name: got %d, %q", status, body)
	}
	proxyURL, _ := client.Transport.(*http.Transport).Proxy(nil)
	if status, body := get(http.DefaultClient, proxyURL.String()); status != http.StatusBadRequest || !strings.Contains(body, "http_proxy") {
		t.Errorf("request to the proxy itself: got %d, %q", status, body)
	}
}

// echo serves connections. It returns the received data after the client has closed its side of the
// connection for writing.
func echo(t *testing.T, greeting string) net.Listener {
	listener := listen(t)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				data, _ := io.ReadAll(conn)
				fmt.Fprint(conn, greeting, string(data))
			}()
		}
	}()
	return listener
}

func TestDNSProxyConnectsToTargets(t *testing.T) {
	one, two := echo(t, "one: "), echo(t, "two: ")
	down := listen(t)
	down.Close()
	portOf := func(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }
	targets := []Target{
		{Host: "127.0.0.1", RemotePort: portOf(one)}, {Host: "localhost", RemotePort: portOf(two)}, {Host: "127.0.0.1", RemotePort: portOf(down)},
	}
	listeners := []net.Listener{listen(t), listen(t), listen(t)}
	var log strings.Builder
	component := componenttest.Run(t, func(ctx context.Context, ready func()) error {
		ready()
		return serveTCP(ctx, listeners, targets, "tcp4", slog.New(slog.NewTextHandler(&log, nil)))
	})
	for i, want := range []string{"one: hello", "two: hello", ""} {
		conn, err := net.Dial("tcp4", listeners[i].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "hello")
		_ = conn.(*net.TCPConn).CloseWrite()
		if got, _ := io.ReadAll(conn); string(got) != want {
			t.Errorf("port %d: got %q, want %q", i, got, want)
		}
		conn.Close()
	}
	open, err := net.Dial("tcp4", listeners[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	component.Stop() // must return although a connection is open
	for _, want := range []string{"connected client", "connection ended", "cannot connect client"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, log.String())
		}
	}
	eventually.True(t, "the port is closed", func() bool {
		conn, err := net.Dial("tcp4", listeners[1].Addr().String())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}
