package router

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/router/claim"
	"github.com/slipway-platform/slipway/router/haproxy"
)

func TestSelectorsOfShard(t *testing.T) {
	for variables, want := range map[string]string{
		"": "blue/b red/a red/b", "ROUTE_LABELS=tier=gold": "red/a", "NAMESPACE_LABELS=team=red": "red/a red/b",
		"PROJECT_LABELS=team!=red": "blue/b", "NAMESPACE_LABELS=team=red PROJECT_LABELS=stage=test": "", "NAMESPACE_LABELS=team=red ROUTE_LABELS=tier!=gold": "red/b",
	} {
		values := map[string]string{}
		for _, pair := range strings.Fields(variables) {
			name, value, _ := strings.Cut(pair, "=")
			values[name] = value
		}
		v, err := newView(&rest.Config{Host: "http://127.0.0.1:1"}, read(t, values))
		if err != nil {
			t.Fatal(err)
		}
		for _, route := range []*routev1.Route{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "red", Name: "a", Labels: map[string]string{"tier": "gold"}}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "red", Name: "b"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "b"}},
		} {
			if err := v.routes.GetStore().Add(route); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"red", "blue"} {
			if v.namespaces == nil {
				break
			}
			if err := v.namespaces.GetStore().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": name}}}); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, route := range v.shard() {
			got = append(got, describe(route))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%q chooses %v, want %s", variables, got, want)
		}
	}
}

func TestStatusNamesRouter(t *testing.T) {
	verdict := claim.Verdict{Route: &routev1.Route{Spec: routev1.RouteSpec{Host: "a.com"}}}
	writer := statusWriter{settings: read(t, map[string]string{"ROUTER_SERVICE_NAME": "gold", "ROUTER_CANONICAL_HOSTNAME": "gold.example.com"})}
	if got := writer.entry(verdict); got.RouterName != "gold" || got.RouterCanonicalHostname != "gold.example.com" || got.Host != "a.com" {
		t.Errorf("the entry is %+v", got)
	}
	writer.settings = read(t, nil)
	if got := writer.entry(verdict); got.RouterName != "public" || got.RouterCanonicalHostname != "" {
		t.Errorf("by default the entry is %+v", got)
	}
}

// freePort returns an unused port on this machine.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

func TestMetricsVariables(t *testing.T) {
	for kind, want := range map[string]string{"haproxy": "haproxy_exporter_up", "none": ""} {
		address := "127.0.0.1:" + freePort(t)
		s := read(t, map[string]string{"ROUTER_LISTEN_ADDR": address, "ROUTER_METRICS_TYPE": kind, "STATS_USERNAME": "admin", "STATS_PASSWORD": "open"})
		engine := &haproxy.Engine{Dir: t.TempDir()} // no HAProxy runs in this directory
		componenttest.Start(t, func(ctx context.Context, ready func()) error {
			ready()
			return serve(ctx, s.Text("ROUTER_LISTEN_ADDR"), access{settings: s}, engine, newMetrics(), func() string { return "" })
		})
		var body string
		eventually.True(t, "a response on "+address, func() bool {
			response, err := http.Get("http://admin:open@" + address + "/metrics")
			if err != nil {
				return false
			}
			defer response.Body.Close()
			content, err := io.ReadAll(response.Body)
			body = string(content)
			return err == nil
		})
		for _, name := range []string{
			"haproxy_exporter_up", "haproxy_exporter_csv_parse_failures", "haproxy_exporter_scrape_interval 5", "haproxy_exporter_total_scrapes 1", "haproxy_exporter_server_threshold 500",
			"template_router_reload_seconds", "template_router_write_config_seconds", "template_router_reload_failure 0", "openshift_build_info{",
		} {
			if strings.Contains(body, name) != (want != "") {
				t.Errorf("with ROUTER_METRICS_TYPE=%s, %s is missing or unexpected in\n%s", kind, name, body)
			}
		}
		response, err := http.Get("http://" + address + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("without HAProxy, the health check returns %d", response.StatusCode)
		}
	}
}

func TestStatisticsAreCached(t *testing.T) {
	for interval, want := range map[string]int{"1h": 1, "1us": 2} {
		requests := 0
		registry := prometheus.NewRegistry()
		registry.MustRegister(newCollector(read(t, map[string]string{"ROUTER_METRICS_HAPROXY_BASE_SCRAPE_INTERVAL": interval}), func() (string, error) {
			requests++
			return "# pxname,svname\n", nil
		}))
		for range 2 {
			if _, err := registry.Gather(); err != nil {
				t.Fatal(err)
			}
		}
		if requests != want {
			t.Errorf("with an interval of %s HAProxy received %d requests, want %d", interval, requests, want)
		}
	}
}

func TestBindPortsAfterSync(t *testing.T) {
	for after, bound := range map[string]bool{"false": true, "true": false} {
		requests := make(chan struct{}, 100)
		// The API server never responds, so the routes are never synced.
		silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			requests <- struct{}{}
			<-r.Context().Done()
		}))
		dir, err := os.MkdirTemp("", "router-") // a short path, because socket paths are limited
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		variables := map[string]string{"ROUTER_BIND_PORTS_AFTER_SYNC": after, "ROUTER_LISTEN_ADDR": "127.0.0.1:" + freePort(t)}
		for _, name := range []string{"ROUTER_SERVICE_HTTP_PORT", "ROUTER_SERVICE_HTTPS_PORT", "ROUTER_SERVICE_SNI_PORT", "ROUTER_SERVICE_NO_SNI_PORT"} {
			variables[name] = freePort(t)
		}
		s := read(t, variables)
		router := &Router{Config: &rest.Config{Host: silent.URL}, Settings: s, Program: "/usr/sbin/haproxy", Dir: dir}
		component := componenttest.Start(t, router.Run)
		<-requests
		dial := func() bool {
			connection, err := net.Dial("tcp", "127.0.0.1:"+s.Text("ROUTER_SERVICE_HTTP_PORT"))
			if err == nil {
				connection.Close()
			}
			return err == nil
		}
		if bound {
			eventually.True(t, "the port is bound", dial)
		} else {
			eventually.True(t, "response to a health check", func() bool {
				response, err := http.Get("http://" + s.Text("ROUTER_LISTEN_ADDR") + "/healthz")
				if err == nil {
					response.Body.Close()
				}
				return err == nil
			})
			if dial() {
				t.Error("the port is bound before the routes are synced")
			}
		}
		silent.CloseClientConnections()
		component.Stop()
		silent.Close()
	}
}
