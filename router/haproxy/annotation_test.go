package haproxy

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/router/environment"
	"github.com/slipway-platform/slipway/router/model"
)

func TestCookiesKeepClientAtPod(t *testing.T) {
	t.Parallel()
	b := newFixture(t, map[string]string{"ROUTER_COOKIE_NAME": "usual", "ROUTER_LOAD_BALANCE_ALGORITHM": "roundrobin"})
	for i := range 3 {
		b.pod("web", fmt.Sprint("pod", i), nil)
	}
	b.route("default", "default.com", "web")
	b.route("named", "named.com", "web", annotated(annotationCookie, "mine"), secured(routev1.TLSConfig{Termination: "edge"}))
	b.route("bad", "bad.com", "web", annotated(annotationCookie, "a b\nserver x 1.2.3.4:5"))
	b.route("none", "none.com", "web", annotated("haproxy.router.openshift.io/disable_cookies", "true"))
	b.run()
	b.until("http://none.com", "pod0")
	for url, want := range map[string]string{"http://default.com": "usual=", "https://named.com": "mine=", "http://bad.com": "usual=", "http://none.com": ""} {
		_, _, header := b.get(url)
		got := header.Get("Set-Cookie")
		if !strings.HasPrefix(got, want) || want == "" && got != "" || want != "" && !strings.Contains(got, "HttpOnly") ||
			strings.Contains(got, "Secure") != strings.HasPrefix(url, "https") {
			t.Errorf("%s sets the cookie %q, want %q", url, got, want)
		}
	}
	counts := map[string]int{}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := b.client(nil)
	client.Jar = jar
	for range 9 {
		response, err := client.Get("http://default.com")
		if err != nil {
			t.Fatal(err)
		}
		var name string
		if _, err := fmt.Fscan(response.Body, &name); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		counts[name]++
	}
	without := map[string]int{}
	for range 9 {
		without[b.who("http://none.com")]++
	}
	if len(counts) != 1 || len(without) != 3 {
		t.Errorf("with a cookie the pods %v respond, without one the pods %v", counts, without)
	}
}

func TestBalanceOfRoute(t *testing.T) {
	alternates := func(r *routev1.Route) { r.Spec.AlternateBackends = []routev1.RouteTargetReference{{Name: "other"}} }
	passthrough := secured(routev1.TLSConfig{Termination: "passthrough"})
	for _, tt := range []struct {
		variables map[string]string
		changes   []func(*routev1.Route)
		want      string
	}{
		{nil, nil, "leastconn"},
		{nil, []func(*routev1.Route){passthrough}, "source"},
		{nil, []func(*routev1.Route){passthrough, alternates}, "roundrobin"},
		{nil, []func(*routev1.Route){annotated(annotationBalance, "source")}, "source"},
		{nil, []func(*routev1.Route){annotated(annotationBalance, "random\nfoo")}, "leastconn"},
		{map[string]string{"ROUTER_LOAD_BALANCE_ALGORITHM": "roundrobin"}, nil, "roundrobin"},
		{map[string]string{"ROUTER_LOAD_BALANCE_ALGORITHM": "roundrobin"}, []func(*routev1.Route){passthrough}, "source"},
		{map[string]string{"ROUTER_TCP_BALANCE_SCHEME": "leastconn"}, []func(*routev1.Route){passthrough, alternates}, "leastconn"},
		{map[string]string{"ROUTER_TCP_BALANCE_SCHEME": "leastconn"}, []func(*routev1.Route){passthrough, annotated(annotationBalance, "roundrobin")}, "roundrobin"},
	} {
		b := newFixture(t, tt.variables)
		b.route("r", "r.com", "web", tt.changes...)
		if got := b.config().Backends[0].text(); !strings.Contains(got, "\n  balance "+tt.want+"\n") {
			t.Errorf("%v: want balance %s in\n%s", tt.variables, tt.want, got)
		}
	}
}

func TestWhitelist(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("web", "web", nil)
	many := strings.Repeat("10.1.2.3 ", 130) + "127.0.0.1"
	for name, list := range map[string]string{
		"one": "127.0.0.1", "net": "192.168.1.0/24 127.0.0.0/8", "other": "192.168.1.10", "broken": "127.0.0.1.5 nonsense", "part": "nonsense 127.0.0.1", "empty": " ",
		"many": many, "inject": "127.0.0.2\n  server x 127.0.0.1:1",
	} {
		b.route(name, name+".com", "web", annotated(annotationWhitelist, list))
	}
	b.run()
	for name, want := range map[string]string{"one": "web", "net": "web", "other": "0", "broken": "0", "part": "web", "empty": "web", "many": "web", "inject": "0"} {
		b.until("http://"+name+".com", want)
	}
}

func TestTimeoutOfRoute(t *testing.T) {
	t.Parallel()
	b := newFixture(t, map[string]string{"ROUTER_DEFAULT_SERVER_TIMEOUT": "20s"})
	b.pod("web", "web", nil)
	b.route("short", "short.com", "web", annotated("haproxy.router.openshift.io/timeout", "100ms"))
	b.route("usual", "usual.com", "web")
	b.route("bad", "bad.com", "web", annotated("haproxy.router.openshift.io/timeout", "1s extra"))
	b.run()
	for url, want := range map[string]string{"http://short.com?wait=10s": "504", "http://usual.com?wait=300ms": "web", "http://bad.com?wait=300ms": "web"} {
		if got := b.who(url); got != want {
			t.Errorf("%s is served by %s, want %s", url, got, want)
		}
	}
}

func TestRatesAreLimited(t *testing.T) {
	t.Parallel()
	const on = "haproxy.router.openshift.io/rate-limit-connections"
	b := newFixture(t, nil)
	b.pod("web", "web", nil)
	b.route("http", "http.com", "web", annotated(on, "true", on+".rate-http", "5"))
	b.route("tcp", "tcp.com", "web", annotated(on, "TRUE", on+".concurrent-tcp", "2"))
	b.route("rate", "rate.com", "web", annotated(on, "true", on+".rate-tcp", "5"))
	b.route("off", "off.com", "web", annotated(on+".rate-http", "1"))
	b.run()
	for _, host := range []string{"http.com", "rate.com"} {
		eventually.Equal(t, "the limit of "+host, func() string { return b.who("http://" + host) }, "429")
	}
	for range 20 {
		if got := b.who("http://off.com"); got != "web" {
			t.Fatalf("without the annotation that enables limits, the response is %s", got)
		}
	}
	var end atomic.Bool
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for !end.Load() {
				b.who("http://tcp.com?wait=1s")
			}
		})
	}
	b.until("http://tcp.com", "429")
	end.Store(true)
	group.Wait()
	b.until("http://tcp.com", "web")
}

func TestStrictTransportSecurity(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("web", "web", nil)
	edge := secured(routev1.TLSConfig{Termination: "edge", InsecureEdgeTerminationPolicy: "Allow"})
	const full = "max-age=31536000;includeSubDomains;preload"
	b.route("full", "full.com", "web", edge, annotated(annotationHSTS, full))
	b.route("off", "off.com", "web", edge, annotated(annotationHSTS, "max-age=0"))
	b.route("bad", "bad.com", "web", edge, annotated(annotationHSTS, "max-age=1; evil"))
	b.route("plain", "plain.com", "web", annotated(annotationHSTS, full))
	b.run()
	for url, want := range map[string]string{
		"https://full.com": full, "http://full.com": "", "https://off.com": "max-age=0", "https://bad.com": "", "http://plain.com": "",
	} {
		status, _, header := b.get(url)
		if got := header.Get("Strict-Transport-Security"); status != http.StatusOK || got != want {
			t.Errorf("%s responds with %d and %q, want %q", url, status, got, want)
		}
	}
}

func TestHealthChecksRemoveBrokenPod(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("web", "good", nil)
	broken := b.pod("web", "broken", nil)
	b.route("web", "web.com", "web", annotated(annotationInterval, "50ms", "haproxy.router.openshift.io/disable_cookies", "true", annotationBalance, "roundrobin"))
	b.run()
	b.until("http://web.com", "broken")
	broken.Close()
	eventually.True(t, "the broken pod is down", func() bool {
		stats, err := b.engine.Stats()
		return err == nil && strings.Contains(stats, ",DOWN,")
	})
	for range 10 {
		if got := b.who("http://web.com"); got != "good" {
			t.Errorf("response %s", got)
		}
	}
}

func TestHealthChecksAreRare(t *testing.T) {
	s, err := environment.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		share, endpoints int
		requested, want  string
	}{
		{1, 2, "", "5000ms"}, {1, 2, "50ms", "50ms"}, {1, 2, "1us", "2ms"}, {1, 2, "30s", "30s"}, {1, 1000, "1ms", "1024ms"},
		{64, 150, "1ms", "5000ms"}, {16384, 2, "4s", "5000ms"}, {16384, 2, "1h", "1h"}, {1, 2, "none", "5000ms"},
	} {
		config := &model.ServiceAliasConfig{Share: c.share, ActiveEndpoints: c.endpoints, Annotations: map[string]string{annotationInterval: c.requested}}
		if got := interval(config, s); got != c.want {
			t.Errorf("%d routes with %d endpoints and the annotation %q have the interval %s, want %s", c.share, c.endpoints, c.requested, got, c.want)
		}
	}
}

func TestUnusedShapesAreDropped(t *testing.T) {
	b := newFixture(t, nil)
	for i := range 100 {
		b.route("web", "web.com", "web", annotated("haproxy.router.openshift.io/timeout", fmt.Sprint(i+20, "s")))
		config := b.config()
		if want := fmt.Sprintf("timeout server %ds", i+20); !strings.Contains(config.Text(), want) {
			t.Fatalf("%q is missing in %s", want, config.Text())
		}
	}
	if got := len(b.writer.shapes); got > 10 {
		t.Errorf("one route left %d shapes", got)
	}
}
