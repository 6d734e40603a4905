package router

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestMetricsRequireTLSAndHealthDoesNot(t *testing.T) {
	authority := certtest.New(t)
	first, second := authority.Issue(t, "first", "localhost"), authority.Issue(t, "second", "localhost")
	port := freePort(t)
	s := read(t, map[string]string{"ROUTER_METRICS_TLS_CERT_FILE": first.CertFile, "ROUTER_METRICS_TLS_KEY_FILE": first.KeyFile, "STATS_USERNAME": "admin", "STATS_PASSWORD": "open"})
	componenttest.Start(t, func(ctx context.Context, ready func()) error {
		ready()
		return serve(ctx, "127.0.0.1:"+port, access{settings: s}, running{}, newMetrics(), func() string { return "" })
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool()}, DisableKeepAlives: true}}
	get := func(url string) string {
		response, err := client.Get(strings.Replace(url, "://", "://admin:open@localhost:"+port, 1))
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		content, _ := io.ReadAll(response.Body)
		by := "nobody"
		if response.TLS != nil {
			by = response.TLS.PeerCertificates[0].Subject.CommonName
		}
		line, _, _ := strings.Cut(string(content), "\n")
		return fmt.Sprint(response.StatusCode, " ", by, " ", line)
	}
	eventually.Equal(t, "health", func() string { return get("http:///healthz") }, "200 nobody ok")
	for url, want := range map[string]string{
		"https:///healthz/ready": "200 first ok", "http:///metrics": "403 nobody use https", "http:///": "403 nobody use https", "http:///healthzx": "403 nobody use https",
		"http:///healthz/x": "403 nobody use https", "http:///healthz/ready": "200 nobody ok",
		"https:///metrics": "200 first # HELP haproxy_exporter_csv_parse_failures Rows of statistics that could not be parsed",
	} {
		if got := get(url); got != want {
			t.Errorf("%s returns %q, want %q", url, got, want)
		}
	}
	for from, to := range map[string]string{second.CertFile: first.CertFile, second.KeyFile: first.KeyFile} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if got := get("https:///healthz"); got != "200 second ok" {
		t.Errorf("after a change of the certificate file: %q", got)
	}
}

func TestMissingMetricsCertificateIsAnError(t *testing.T) {
	s := read(t, map[string]string{"ROUTER_METRICS_TLS_CERT_FILE": "/nowhere/tls.crt", "ROUTER_METRICS_TLS_KEY_FILE": "/nowhere/tls.key"})
	err := serve(t.Context(), "127.0.0.1:0", access{settings: s}, running{}, newMetrics(), func() string { return "" })
	if err == nil || !strings.Contains(err.Error(), "ROUTER_METRICS_TLS_CERT_FILE") {
		t.Errorf("the error is %v", err)
	}
}

// exhausted is a listener whose first Accept fails, as if the process had no free file descriptors.
type exhausted struct {
	net.Listener
	once sync.Once
}

func (e *exhausted) Accept() (connection net.Conn, err error) {
	e.once.Do(func() { err = &net.OpError{Op: "accept", Err: unix.EMFILE} })
	if err != nil {
		return nil, err
	}
	return e.Listener.Accept()
}

func TestAcceptErrorIsRetried(t *testing.T) {
	pair := certtest.New(t).Issue(t, "router", "localhost")
	s := read(t, map[string]string{"ROUTER_METRICS_TLS_CERT_FILE": pair.CertFile, "ROUTER_METRICS_TLS_KEY_FILE": pair.KeyFile})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	componenttest.Start(t, func(ctx context.Context, ready func()) error {
		ready()
		return serveAll(ctx, s, &exhausted{Listener: listener}, http.NotFoundHandler())
	})
	response, err := http.Get("http://" + listener.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
}
