package balancer

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// server is an API server that returns its name.
type server struct {
	*httptest.Server
	broken atomic.Bool // true if the server fails its checks
}

func newServer(t *testing.T, name string) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && s.broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, name)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) address() string { return s.Listener.Addr().String() }

func insecure() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}

// start runs a balancer and returns its URL and a client that reuses connections.
func start(t *testing.T, b *Balancer) (client *http.Client, url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.Address, b.HTTP = listener.Addr().String(), insecure()
	listener.Close()
	componenttest.Run(t, b.Run)
	return insecure(), "https://" + b.Address + "/"
}

// name returns the name of the server that responds, or "".
func name(client *http.Client, url string) string {
	response, err := client.Get(url)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	data, _ := io.ReadAll(response.Body)
	return string(data)
}

func TestConnectionsMoveToServerThatServes(t *testing.T) {
	first, second := newServer(t, "first"), newServer(t, "second")
	serves := make(chan struct{}, 1)
	client, url := start(t, &Balancer{Servers: []string{first.address(), second.address()}, Serves: serves})
	if got := name(client, url); got != "first" {
		t.Fatalf("got %q", got)
	}
	<-serves
	first.broken.Store(true) // the client keeps its connection
	eventually.Equal(t, "the server that serves", func() string { return name(client, url) }, "second")
	first.broken.Store(false)
	<-serves
	second.Close()
	eventually.Equal(t, "the server that recovered", func() string { return name(client, url) }, "first")
}

func TestPreferredServerGetsConnectionsWhileItServes(t *testing.T) {
	other, own := newServer(t, "other"), newServer(t, "own")
	client, url := start(t, &Balancer{Servers: []string{other.address(), own.address()}, Preferred: own.address()})
	if got := name(client, url); got != "own" {
		t.Fatalf("got %q", got)
	}
	own.broken.Store(true)
	eventually.Equal(t, "another server responds", func() string { return name(client, url) }, "other")
	own.broken.Store(false)
	eventually.Equal(t, "the node's own server responds to new connections", func() string { return name(insecure(), url) }, "own")
}

func TestOnlyServerKeepsConnections(t *testing.T) {
	only := newServer(t, "only")
	var b Balancer
	b.Servers = []string{only.address()}
	client, url := start(t, &b)
	only.broken.Store(true)
	eventually.True(t, "the check fails", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return !b.backends[0].serves
	})
	if got := name(client, url); got != "only" {
		t.Errorf("got %q", got)
	}
}

func TestNewServersAreStored(t *testing.T) {
	first, second := newServer(t, "first"), newServer(t, "second")
	var mu sync.Mutex
	var stored []string
	b := &Balancer{Servers: []string{first.address()}, Save: func(servers []string) error {
		mu.Lock()
		defer mu.Unlock()
		stored = append(stored, strings.Join(servers, " "))
		return nil
	}}
	client, url := start(t, b)
	b.update(nil) // an empty list is never correct
	b.update([]string{second.address()})
	b.update([]string{second.address()})
	eventually.Equal(t, "the new server responds", func() string { return name(client, url) }, "second")
	// The file keeps the previous server until the new server has passed a check.
	want := []string{second.address() + " " + first.address(), second.address()}
	eventually.True(t, "the new server alone is stored", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Equal(stored, want)
	})
}

func TestPreviousServerIsKeptUntilListedServerServes(t *testing.T) {
	former, listed := newServer(t, "former"), newServer(t, "listed")
	b := &Balancer{Servers: []string{former.address()}, HTTP: insecure()}
	client, url := start(t, b)
	eventually.True(t, "the previous server serves", func() bool { return name(client, url) == "former" })
	b.update([]string{"127.0.0.1:1"}) // the address of a lost master
	b.apply()
	if got := name(client, url); got != "former" {
		t.Errorf("%q responds while no listed server serves", got)
	}
	b.update([]string{"127.0.0.1:1", listed.address()})
	eventually.True(t, "the previous server is not in use", func() bool { return !slices.Contains(b.servers(), former.address()) })
	eventually.True(t, "the listed server responds", func() bool { return name(client, url) == "listed" })
}

// The masters were restored on machines with different addresses.
func TestPublicAddressIsUsedWhileNoListedServerServes(t *testing.T) {
	lost, public, restored := newServer(t, "lost"), newServer(t, "public"), newServer(t, "restored")
	b := &Balancer{Servers: []string{lost.address()}, Public: public.address()}
	client, url := start(t, b)
	if got := name(client, url); got != "lost" || slices.Contains(b.servers(), public.address()) {
		t.Errorf("while the listed server serves, %q responds, of %v", got, b.servers())
	}
	lost.Close()
	eventually.Equal(t, "the public address responds", func() string { return name(client, url) }, "public")
	b.update([]string{restored.address()})
	eventually.Equal(t, "the restored server responds", func() string { return name(insecure(), url) }, "restored")
	eventually.True(t, "the public address is not in use", func() bool { return slices.Equal(b.servers(), []string{restored.address()}) })
}

func TestAddressesOfEndpoints(t *testing.T) {
	port, dnsPort, dns := int32(8443), int32(8053), "dns"
	slice := &discoveryv1.EndpointSlice{
		Ports:     []discoveryv1.EndpointPort{{Port: &port}, {}, {Name: &dns, Port: &dnsPort}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.2"}}, {Addresses: []string{"192.0.2.1"}}},
	}
	want := []string{"192.0.2.1:8443", "192.0.2.2:8443"}
	if got := addresses([]any{slice, slice}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
