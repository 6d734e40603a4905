package environment

import (
	"strings"
	"testing"
	"time"
)

// specified lists the variables in the specification with their documented defaults.
const specified = `
EXTENDED_VALIDATION=true ROUTER_BIND_PORTS_AFTER_SYNC=false ROUTER_LISTEN_ADDR=0.0.0.0:1936 ROUTER_LOG_LEVEL=warning ROUTER_MAX_CONNECTIONS=20000
ROUTER_METRICS_HAPROXY_SERVER_THRESHOLD=500 ROUTER_METRICS_HAPROXY_BASE_SCRAPE_INTERVAL=5s ROUTER_METRICS_HAPROXY_TIMEOUT=5s ROUTER_METRICS_TYPE=haproxy
ROUTER_SERVICE_HTTPS_PORT=443 ROUTER_SERVICE_HTTP_PORT=80 ROUTER_SERVICE_NAME=public ROUTER_SERVICE_NO_SNI_PORT=10443 ROUTER_SERVICE_SNI_PORT=10444
ROUTER_STRICT_SNI=false ROUTER_CIPHERS=intermediate ROUTER_BACKEND_CHECK_INTERVAL=5000ms ROUTER_CLIENT_FIN_TIMEOUT=1s ROUTER_DEFAULT_CLIENT_TIMEOUT=30s
ROUTER_DEFAULT_CONNECT_TIMEOUT=5s ROUTER_DEFAULT_SERVER_FIN_TIMEOUT=1s ROUTER_DEFAULT_SERVER_TIMEOUT=30s ROUTER_DEFAULT_TUNNEL_TIMEOUT=1h
ROUTER_SLOWLORIS_HTTP_KEEPALIVE=300s ROUTER_SLOWLORIS_TIMEOUT=10s RELOAD_INTERVAL=5s
DEFAULT_CERTIFICATE= DEFAULT_CERTIFICATE_DIR= DEFAULT_CERTIFICATE_PATH= NAMESPACE_LABELS= PROJECT_LABELS= RELOAD_SCRIPT= ROUTER_ALLOWED_DOMAINS=
ROUTER_BACKEND_PROCESS_ENDPOINTS= ROUTER_COOKIE_NAME= ROUTER_DENIED_DOMAINS= ROUTER_OVERRIDE_HOSTNAME=false ROUTER_CANONICAL_HOSTNAME= ROUTER_SERVICE_NAMESPACE=
ROUTER_SUBDOMAIN= ROUTER_SYSLOG_ADDRESS= ROUTER_SYSLOG_FORMAT= ROUTER_TCP_BALANCE_SCHEME= ROUTER_LOAD_BALANCE_ALGORITHM= ROUTE_LABELS= STATS_PASSWORD=
STATS_PORT= STATS_USERNAME= TEMPLATE_FILE= ROUTER_USE_PROXY_PROTOCOL=false ROUTER_ALLOW_WILDCARD_ROUTES=false ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK=false
ROUTER_ENABLE_COMPRESSION=false ROUTER_METRICS_HAPROXY_EXPORTED=2,4,5,7,8,9,13,14,17,21,24,33,35,40,43,60`

func TestDefaultsMatchSpecification(t *testing.T) {
	s, err := Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, variable := range Variables() {
		if names[variable.Name] || variable.Meaning == "" {
			t.Errorf("%s is in the table twice or has no effect", variable.Name)
		}
		names[variable.Name] = true
	}
	for _, pair := range strings.Fields(specified) {
		name, value, _ := strings.Cut(pair, "=")
		if !names[name] || s.Text(name) != value {
			t.Errorf("%s is %q, want %q", name, s.Text(name), value)
		}
	}
	if got := s.Text("ROUTER_COMPRESSION_MIME"); got != "text/html text/plain text/css" {
		t.Errorf("types are %q", got)
	}
}

func TestInvalidValuesAreReported(t *testing.T) {
	_, err := Read(map[string]string{
		"ROUTER_STRICT_SNI": "yes", "RELOAD_INTERVAL": "5 s", "STATS_PORT": "0", "ROUTER_TCP_BALANCE_SCHEME": "random", "ROUTE_LABELS": "a==b==c",
		"ROUTER_COOKIE_NAME": "a;b", "ROUTER_LISTEN_ADDR": "1936", "ROUTER_SYSLOG_FORMAT": "a\nb", "ROUTER_SERVICE_SNI_PORT": "10443",
		"ROUTER_DOMAIN": "a b", "ROUTER_METRICS_TLS_KEY_FILE": "/key", "STATS_PASSWORD": "hush\nhush",
	})
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Fatalf("the error is missing or contains the password: %v", err)
	}
	for _, name := range []string{"ROUTER_STRICT_SNI", "RELOAD_INTERVAL", "STATS_PORT", "ROUTER_TCP_BALANCE_SCHEME", "ROUTE_LABELS", "ROUTER_COOKIE_NAME", "ROUTER_DOMAIN", "ROUTER_METRICS_TLS_CERT_FILE", "STATS_PASSWORD",
		"ROUTER_LISTEN_ADDR", "ROUTER_SYSLOG_FORMAT", "ROUTER_SERVICE_NO_SNI_PORT"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not reported: %v", name, err)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5500ms": 5500 * time.Millisecond, "30": 30 * time.Millisecond, "1h": time.Hour, "2d": 48 * time.Hour, "7us": 7 * time.Microsecond, "3m": 3 * time.Minute,
		"": 0, "0s": 0, "05s": 0, "-1s": 0, "+1s": 0, "1.5s": 0, "s": 0, "1 s": 0, "1sm": 0, "1s\n": 0, "99999999999999999999s": 0, "25d": 0, "2147483648": 0,
	} {
		if got, ok := ParseDuration(text); got != want || ok != (want > 0) {
			t.Errorf("%q is %v, %t, want %v", text, got, ok, want)
		}
	}
}

func TestValuesOfVariables(t *testing.T) {
	s, err := Read(map[string]string{
		"ROUTER_STRICT_SNI": "TRUE", "ROUTER_DENIED_DOMAINS": "open.header.test, openshift.org,block.it", "STATS_PORT": " 1937 ", "ROUTE_LABELS": "env=prod", "MINE": "kept",
	})
	if err != nil {
		t.Fatal(err)
	}
	domains := strings.Join(s.List("ROUTER_DENIED_DOMAINS"), " ")
	if !s.On("ROUTER_STRICT_SNI") || s.On("ROUTER_USE_PROXY_PROTOCOL") || domains != "open.header.test openshift.org block.it" || s.Number("STATS_PORT") != 1937 ||
		s.Duration("RELOAD_INTERVAL") != 5*time.Second || s.Labels("ROUTE_LABELS").String() != "env=prod" || !s.Labels("PROJECT_LABELS").Empty() || s.Text("MINE") != "kept" {
		t.Errorf("read %v", s)
	}
	if other := s.With(map[string]string{"STATS_PORT": "1"}); other.Number("STATS_PORT") != 1 || s.Number("STATS_PORT") != 1937 {
		t.Error("the settings were changed through the copy")
	}
}
