package masters

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/router/haproxy"
)

// master starts an API server that responds with its name.
func master(t *testing.T, name string) Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
	t.Cleanup(server.Close)
	return Server{Name: name, Address: server.Listener.Addr().String()}
}

// proxyFor starts a load balancer for the given masters.
func proxyFor(t *testing.T, servers ...Server) *Proxy {
	t.Helper()
	program, err := haproxy.FindProgram()
	if err != nil {
		t.Fatal(err)
	}
	dir := componenttest.ShortDir(t)
	proxy := &Proxy{Config: Config{Listen: componenttest.UnusedAddress(t), Stats: componenttest.UnusedAddress(t), Servers: servers}, Program: program, Dir: dir}
	componenttest.Run(t, proxy.Run)
	return proxy
}

// get requests a page, using the client's existing connection if there is one.
func get(client *http.Client, address string) (string, error) {
	response, err := client.Get("https://" + address)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// newClient returns a client that keeps its connection open.
func newClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestMastersCanJoinAndLeaveWhileBalancerRuns(t *testing.T) {
	first, second := master(t, "first"), master(t, "second")
	proxy := proxyFor(t, first)
	persistent := newClient(t)
	if got, err := get(persistent, proxy.Config.Listen); got != "first" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	// Requests that a client sends continuously must not fail.
	stop, failed := make(chan struct{}), make(chan error, 1)
	var requests sync.WaitGroup
	requests.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := get(persistent, proxy.Config.Listen); err != nil {
				failed <- err
				return
			}
		}
	})
	if err := proxy.Set([]Server{first, second}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "HAProxy checks both masters", func() bool {
		stats, err := proxy.run().Stats()
		return err == nil && strings.Count(stats, backendName+",") >= 3 && strings.Contains(stats, ",second,")
	})
	close(stop)
	requests.Wait()
	select {
	case err := <-failed:
		t.Errorf("a request failed while a master joined: %v", err)
	default:
	}
	if err := proxy.Set([]Server{second}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "new connections reach the remaining master", func() bool {
		got, err := get(newClient(t), proxy.Config.Listen)
		return err == nil && got == "second"
	})
	eventually.True(t, "the connection to the removed master has ended", func() bool {
		got, err := get(persistent, proxy.Config.Listen)
		return err == nil && got == "second"
	})
}

func TestRejectedConfigurationKeepsFormerMasters(t *testing.T) {
	first := master(t, "first")
	proxy := proxyFor(t, first)
	for name, servers := range map[string][]Server{
		"no master": nil, "a bad name": {{Name: "a b", Address: first.Address}}, "the same name": {first, first},
	} {
		if err := proxy.Set(servers); err == nil {
			t.Errorf("%s: the masters are accepted", name)
		}
	}
	// HAProxy rejects this configuration, because it cannot bind the address.
	former := proxy.Config
	proxy.Config.Listen = "192.0.2.1:1"
	if err := proxy.Set([]Server{first}); err != nil {
		t.Fatal(err)
	}
	proxy.Config = former
	eventually.True(t, "HAProxy rejects the configuration", func() bool {
		text, err := os.ReadFile(proxy.run().File())
		return err == nil && strings.Contains(string(text), "192.0.2.1:1")
	})
	if got, err := get(newClient(t), former.Listen); got != "first" || err != nil {
		t.Errorf("after a rejected configuration: got %q, %v", got, err)
	}
}

func TestBalancerNeedsMasters(t *testing.T) {
	proxy := &Proxy{Config: Config{Listen: "*:8443", Stats: DefaultStats}, Dir: t.TempDir()}
	if err := proxy.Run(t.Context(), func() {}); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
