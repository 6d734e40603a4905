package router

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/router/claim"
	"github.com/slipway-platform/slipway/router/environment"
	"github.com/slipway-platform/slipway/router/haproxy"
)

func read(t *testing.T, variables map[string]string) environment.Settings {
	t.Helper()
	s, err := environment.Read(variables)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHostsOfRoutes(t *testing.T) {
	const template = "${name}-${namespace}.apps.example.com"
	for _, tt := range []struct {
		variables       map[string]string
		host, subdomain string
		want            string
	}{
		{nil, "www.example.com", "", "www.example.com"},
		{nil, "", "", ""},
		{nil, "", "www", "www.cluster.example.com"},
		{map[string]string{"ROUTER_DOMAIN": "shard.example.com"}, "", "www", "www.shard.example.com"},
		{map[string]string{"ROUTER_DOMAIN": "shard.example.com"}, "www.example.com", "www", "www.example.com"},
		{map[string]string{"ROUTER_SUBDOMAIN": template}, "", "", "front-shop.apps.example.com"},
		{map[string]string{"ROUTER_SUBDOMAIN": template}, "www.example.com", "", "www.example.com"},
		{map[string]string{"ROUTER_SUBDOMAIN": template, "ROUTER_OVERRIDE_HOSTNAME": "true"}, "www.example.com", "", "front-shop.apps.example.com"},
		{map[string]string{"ROUTER_OVERRIDE_HOSTNAME": "true"}, "www.example.com", "", "www.example.com"},
	} {
		s := decisions{settings: read(t, tt.variables), domain: "cluster.example.com"}
		route := &routev1.Route{Spec: routev1.RouteSpec{Host: tt.host, Subdomain: tt.subdomain}}
		route.Namespace, route.Name = "shop", "front"
		if got := s.host(route); got != tt.want {
			t.Errorf("%v with host %q and subdomain %q: %q, want %q", tt.variables, tt.host, tt.subdomain, got, tt.want)
		}
	}
}

func TestRoutesWithBadCertificates(t *testing.T) {
	route := &routev1.Route{Spec: routev1.RouteSpec{TLS: &routev1.TLSConfig{Termination: "edge", Certificate: "x", Key: "y"}}}
	for value, admitted := range map[string]bool{"true": false, "false": true} {
		s := decisions{settings: read(t, map[string]string{"EXTENDED_VALIDATION": value})}
		verdict := claim.Verdict{Route: route}
		s.validate(&verdict, map[*routev1.Route]error{})
		if verdict.Admitted() != admitted || !admitted && verdict.Reason != ExtendedValidationFailed || admitted && verdict.Route.Spec.TLS.Certificate != "" {
			t.Errorf("with EXTENDED_VALIDATION=%s the verdict is %+v", value, verdict)
		}
	}
	if route.Spec.TLS.Certificate != "x" {
		t.Error("the route itself was changed")
	}
}

func TestDefaultCertificatePrecedence(t *testing.T) {
	authority := certtest.New(t)
	bundles := map[string]string{}
	for _, name := range []string{"text", "path", "dir", "whole"} {
		pair := authority.Issue(t, name)
		chain, err := os.ReadFile(pair.CertFile)
		if err != nil {
			t.Fatal(err)
		}
		key, err := os.ReadFile(pair.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		bundles[name] = string(chain) + string(key)
		files := map[string]string{"tls.crt": string(chain), "tls.key": string(key), "all.pem": bundles[name]}
		if name == "whole" {
			files = map[string]string{"tls.crt": bundles[name]}
		}
		for file, content := range files {
			if err := os.WriteFile(filepath.Join(filepath.Dir(pair.CertFile), file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		bundles[name+" dir"] = filepath.Dir(pair.CertFile)
	}
	remaining := filepath.Join(t.TempDir(), "kept", "default.pem")
	for _, tt := range []struct {
		variables map[string]string
		want      string
	}{
		{map[string]string{"DEFAULT_CERTIFICATE": bundles["text"], "DEFAULT_CERTIFICATE_PATH": bundles["path dir"] + "/all.pem"}, "text"},
		{map[string]string{"DEFAULT_CERTIFICATE_PATH": bundles["path dir"] + "/all.pem", "DEFAULT_CERTIFICATE_DIR": bundles["dir dir"]}, "path"},
		{map[string]string{"DEFAULT_CERTIFICATE_DIR": bundles["dir dir"]}, "dir"},
		{map[string]string{"DEFAULT_CERTIFICATE_DIR": bundles["whole dir"]}, "whole"},
	} {
		got, err := defaultCertificate(read(t, tt.variables), remaining)
		first, _, _ := strings.Cut(bundles[tt.want], "-----END")
		if err != nil || !strings.HasPrefix(string(got), first) {
			t.Errorf("want the certificate of %s: %v", tt.want, err)
		}
	}
	result, err := defaultCertificate(read(t, nil), remaining)
	if err != nil {
		t.Fatal(err)
	}
	second, err := defaultCertificate(read(t, nil), remaining)
	if err != nil || !bytes.Equal(result, second) {
		t.Errorf("the generated certificate is not reused: %v", err)
	}
	if _, err := defaultCertificate(read(t, map[string]string{"DEFAULT_CERTIFICATE_PATH": "/nowhere"}), remaining); err == nil || !strings.Contains(err.Error(), "DEFAULT_CERTIFICATE_PATH") {
		t.Errorf("a missing file: %v", err)
	}
}

// row returns a row of HAProxy's statistics. The value in each column is the column's index, except
// for the names and the state.
func row(proxy, server, state string) string {
	var cells []string
	for i := range 62 {
		cells = append(cells, string(rune('0'+i/10))+string(rune('0'+i%10)))
	}
	cells[0], cells[1], cells[17] = proxy, server, state
	return strings.Join(cells, ",") + "\n"
}

// metricsText returns the metrics in Prometheus text format.
func metricsText(t *testing.T, variables map[string]string) string {
	t.Helper()
	stats := "# pxname,svname\n" + row("public", "FRONTEND", "OPEN") + row("be_http:shop:front", "pod:web-1:web:http:10.0.0.1:8080", "UP") +
		row("be_http:shop:front", "pod:web-2:web:http:10.0.0.2:8080", "DOWN") + row("be_http:shop:front", "BACKEND", "UP")
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(read(t, variables), func() (string, error) { return stats, nil }))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

func TestMetricsOfHAProxy(t *testing.T) {
	const server = `{backend="be_http:shop:front",namespace="shop",pod="web-1",route="front",server="pod:web-1:web:http:10.0.0.1:8080",service="web"}`
	usual := metricsText(t, nil)
	for _, want := range []string{
		"haproxy_exporter_up 1", "haproxy_exporter_server_threshold 500", `haproxy_frontend_bytes_in_total{frontend="public"} 8`, "haproxy_server_up" + server + " 1",
		"haproxy_server_check_failures_total" + server + " 21", `haproxy_backend_connections_total{backend="be_http:shop:front",namespace="shop",route="front"} 7`,
		`haproxy_frontend_http_responses_total{code="5xx",frontend="public"} 43`,
	} {
		if !strings.Contains(usual, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, usual)
		}
	}
	if strings.Contains(usual, "haproxy_backend_bytes_in_total") {
		t.Error("bytes are exported for backends in addition to their servers")
	}
	many := metricsText(t, map[string]string{"ROUTER_METRICS_HAPROXY_SERVER_THRESHOLD": "1"})
	if strings.Contains(many, "haproxy_server_") || !strings.Contains(many, "haproxy_backend_bytes_in_total") {
		t.Errorf("above the threshold, servers are exported:\n%s", many)
	}
	if few := metricsText(t, map[string]string{"ROUTER_METRICS_HAPROXY_EXPORTED": "4"}); strings.Contains(few, "bytes") || !strings.Contains(few, "current_sessions") {
		t.Errorf("columns that are not configured are exported:\n%s", few)
	}
}

func TestPolicyFromVariables(t *testing.T) {
	s := decisions{settings: read(t, map[string]string{
		"ROUTER_ALLOW_WILDCARD_ROUTES": "true", "ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK": "TRUE", "ROUTER_ALLOWED_DOMAINS": "a.com, b.com", "ROUTER_DENIED_DOMAINS": "c.a.com",
	})}
	want := claim.Policy{Wildcards: true, AnyNamespace: true, Allowed: []string{"a.com", "b.com"}, Denied: []string{"c.a.com"}}
	if got := s.policy(); !reflect.DeepEqual(got, want) {
		t.Errorf("the policy is %+v, want %+v", got, want)
	}
	s.settings = read(t, nil)
	if got := s.policy(); got.Wildcards || got.AnyNamespace || len(got.Allowed)+len(got.Denied) > 0 {
		t.Errorf("the default policy is %+v", got)
	}
}

func TestFailedConfigurationIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		variables := read(t, map[string]string{"TEMPLATE_FILE": filepath.Join(t.TempDir(), "none")})
		d, err := newDecisions(&rest.Config{}, variables, "")
		if err != nil {
			t.Fatal(err)
		}
		s := &session{Router: &Router{Settings: variables}, decisions: d, writer: haproxy.Writer{Settings: variables}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		tries := 0
		d.seen.all()
		s.follow(ctx, func() { tries++ })
		if tries < 9 || tries > 11 {
			t.Errorf("%d attempts within ten seconds", tries)
		}
	})
}

func TestDefaultCertificateReloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority, dir := certtest.New(t), t.TempDir()
		install := func(name string) string {
			pair := authority.Issue(t, name)
			for from, to := range map[string]string{pair.CertFile: "tls.crt", pair.KeyFile: "tls.key"} {
				content, err := os.ReadFile(from)
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, to), content, 0o600)
				}
				if err == nil {
					err = os.Chtimes(filepath.Join(dir, to), time.Time{}, time.Now())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			content, err := os.ReadFile(pair.CertFile)
			if err != nil {
				t.Fatal(err)
			}
			return string(content)
		}
		install("first")
		changes := 0
		s := &session{Router: &Router{Settings: read(t, map[string]string{"DEFAULT_CERTIFICATE_DIR": dir})}, again: func() { changes++ }}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.followFiles(ctx)
		<-time.After(filePollInterval * 5 / 2) // wait until the files have been checked twice
		if s.fallback.Load() != nil || changes != 0 {
			t.Error("an unchanged certificate is reloaded")
		}
		second := install("second")
		<-time.After(2 * filePollInterval)
		if pem := s.fallback.Load(); pem == nil || !strings.HasPrefix(string(*pem), second) || changes != 1 {
			t.Errorf("the certificate is not the second one, after %d changes", changes)
		}
		if err := os.WriteFile(filepath.Join(dir, "tls.key"), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * filePollInterval)
		if pem := s.fallback.Load(); !strings.HasPrefix(string(*pem), second) {
			t.Error("a damaged key changes the certificate")
		}
	})
}
