package haproxy

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/router/model"
)

// TestCiphersOfOpenSSLAreAccepted uses the list that `openssl ciphers` prints, as in the
// documentation.
func TestCiphersOfOpenSSLAreAccepted(t *testing.T) {
	t.Parallel()
	output, err := exec.Command("openssl", "ciphers").Output()
	if err != nil {
		t.Fatal(err)
	}
	ciphers := strings.TrimSpace(string(output))
	b := newFixture(t, map[string]string{"ROUTER_CIPHERS": ciphers})
	config := b.config()
	if !strings.Contains(config.Text(), "ssl-default-bind-ciphers "+ciphers+"\n") {
		t.Errorf("the ciphers are not in\n%s", config.Text())
	}
	if err := b.valid(config); err != nil {
		t.Error(err)
	}
}

// TestVariablesInConfiguration checks that each variable appears in the configuration in HAProxy's
// syntax, and that HAProxy accepts all of them together.
func TestVariablesInConfiguration(t *testing.T) {
	t.Parallel()
	for _, settings := range []map[string]string{
		{
			"ROUTER_MAX_CONNECTIONS=100":                              "maxconn 100",
			"ROUTER_THREADS=2":                                        "nbthread 2",
			"ROUTER_DEFAULT_CLIENT_TIMEOUT=31s":                       "timeout client 31s",
			"ROUTER_CLIENT_FIN_TIMEOUT=2s":                            "timeout client-fin 2s",
			"ROUTER_DEFAULT_SERVER_TIMEOUT=32s":                       "timeout server 32s",
			"ROUTER_DEFAULT_SERVER_FIN_TIMEOUT=3s":                    "timeout server-fin 3s",
			"ROUTER_DEFAULT_CONNECT_TIMEOUT=6s":                       "timeout connect 6s",
			"ROUTER_DEFAULT_TUNNEL_TIMEOUT=2h":                        "timeout tunnel 2h",
			"ROUTER_SLOWLORIS_TIMEOUT=11s":                            "timeout http-request 11s",
			"ROUTER_SLOWLORIS_HTTP_KEEPALIVE=200s":                    "timeout http-keep-alive 200s",
			"ROUTER_BACKEND_CHECK_INTERVAL=7s":                        "check inter 7s",
			"ROUTER_SYSLOG_ADDRESS=127.0.0.1:5514":                    "log 127.0.0.1:5514 len 4096 local1 warning",
			"ROUTER_STRICT_SNI=TRUE":                                  "strict-sni",
			"ROUTER_USE_PROXY_PROTOCOL=true":                          "accept-proxy\n",
			"ROUTER_CIPHERS=modern":                                   "ssl-min-ver TLSv1.2",
			"ROUTER_ENABLE_COMPRESSION=true":                          "compression type text/html text/plain text/css",
			"ROUTER_IP_V4_V6_MODE=v4v6":                               " accept-proxy\n  bind :::",
			"STATS_PORT=19999,STATS_USERNAME=joe,STATS_PASSWORD=it's": `stats auth 'joe:it'\''s'`,
			"ROUTER_BACKEND_PROCESS_ENDPOINTS=shuffle":                "server pod:web-0",
		}, {
			"ROUTER_SYSLOG_ADDRESS=127.0.0.1,ROUTER_LOG_LEVEL=debug": "local1 debug",
			"ROUTER_CIPHERS=old": "ssl-min-ver TLSv1.0",
			// Without a username and password, HAProxy serves no statistics.
			"STATS_PORT=19998": "bind :19998\n  stats enable\n  stats uri /\n  stats hide-version\n  http-request deny\n",
		}, {
			"ROUTER_SYSLOG_ADDRESS=127.0.0.1,ROUTER_SYSLOG_FORMAT=%ci": "log-format '%ci'",
			"ROUTER_CIPHERS=ECDHE-RSA-AES128-GCM-SHA256":               "ssl-default-bind-ciphers ECDHE-RSA-AES128-GCM-SHA256\n",
		},
	} {
		variables := map[string]string{}
		for setting := range settings {
			for pair := range strings.SplitSeq(setting, ",") {
				name, value, _ := strings.Cut(pair, "=")
				variables[name] = value
			}
		}
		b := newFixture(t, variables)
		b.pod("web", "web", nil)
		b.pod("web", "web", nil)
		b.route("web", "web.com", "web")
		config := b.config()
		for setting, want := range settings {
			if !strings.Contains(config.Text(), want) {
				t.Errorf("%s: %q is missing in\n%s", setting, want, config.Text())
			}
		}
		if err := b.valid(config); err != nil {
			t.Error(err)
		}
	}
}

func TestUnboundPorts(t *testing.T) {
	b := newFixture(t, nil)
	config, err := b.writer.Write(model.Build(b.admitted(), b.source()), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(config.Text(), "bind :") {
		t.Errorf("ports are bound in\n%s", config.Text())
	}
	if err := b.valid(config); err != nil {
		t.Error(err)
	}
}

func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	b := newFixture(t, map[string]string{"ROUTER_USE_PROXY_PROTOCOL": "true"})
	b.pod("web", "web", nil)
	b.route("web", "web.com", "web")
	b.run()
	eventually.Equal(t, "client address in the pod", func() string {
		connection, err := net.Dial("tcp", "127.0.0.1:"+b.writer.Settings.Text("ROUTER_SERVICE_HTTP_PORT"))
		if err != nil {
			return err.Error()
		}
		defer connection.Close()
		fmt.Fprint(connection, "PROXY TCP4 203.0.113.7 127.0.0.1 1234 80\r\nGET / HTTP/1.0\r\nHost: web.com\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		return response.Header.Get("Got-X-Forwarded-For")
	}, "203.0.113.7")
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	mine := b.authority.Issue(t, "joe")
	b.writer.Settings = b.writer.Settings.With(map[string]string{"ROUTER_MUTUAL_TLS_AUTH": "required", "ROUTER_MUTUAL_TLS_AUTH_CA": b.authority.File, "ROUTER_MUTUAL_TLS_AUTH_FILTER": "^/CN=joe$"})
	b.pod("web", "web", nil)
	b.route("web", "web.com", "web", secured(routev1.TLSConfig{Termination: "edge", InsecureEdgeTerminationPolicy: "Allow"}))
	b.run()
	if status, _, _ := b.get("https://web.com"); status != 0 {
		t.Errorf("without a certificate, the router responds with %d", status)
	}
	forged := func(url string) *http.Request {
		request, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"X-Ssl-Client-Cn": {"root"}, "X_SSL_Client_CN": {"root"}, "X-Ssl_client_dn": {"root"}}
		return request
	}
	trusts := func(response *http.Response) bool {
		return slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(response.Header))...), func(value string) bool { return strings.Contains(value, "root") })
	}
	b.until("http://web.com", "web")
	response, err := b.client(nil).Do(forged("http://web.com"))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK || trusts(response) {
		t.Errorf("over HTTP, the pod receives %v", response.Header)
	}
	for name, want := range map[string]int{"joe": http.StatusOK, "eve": http.StatusForbidden} {
		pair := mine
		if name != "joe" {
			pair = b.authority.Issue(t, name)
		}
		certificate, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		response, err := b.client(&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate}}).Do(forged("https://web.com"))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if trusts(response) {
			t.Errorf("%s forges headers: the pod receives %v", name, response.Header)
		}
		if response.StatusCode != want || want == http.StatusOK && response.Header.Get("Got-X-Ssl-Client-Cn") != `"joe"` && response.Header.Get("Got-X-Ssl-Client-Cn") != "joe" {
			t.Errorf("%s returns %d, the pod receives %q", name, response.StatusCode, response.Header.Get("Got-X-Ssl-Client-Cn"))
		}
	}
}

func TestStrictSNIAndCiphers(t *testing.T) {
	t.Parallel()
	b := newFixture(t, map[string]string{"ROUTER_STRICT_SNI": "true", "ROUTER_CIPHERS": "modern", "ROUTER_ENABLE_HTTP2": "true"})
	b.pod("web", "web", nil)
	pair := b.authority.Issue(t, "own")
	b.route("own", "own.com", "web", secured(routev1.TLSConfig{Termination: "edge", Certificate: text(t, pair.CertFile), Key: text(t, pair.KeyFile)}))
	b.route("none", "none.com", "web", secured(routev1.TLSConfig{Termination: "edge"}))
	b.run()
	b.until("https://own.com", "web")
	if status, _, _ := b.get("https://none.com"); status != 0 {
		t.Errorf("a host without a certificate returns %d", status)
	}
	response, err := b.client(nil).Get("https://own.com")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.ProtoMajor != 2 {
		t.Errorf("the protocol is %s", response.Proto)
	}
	weak := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}}
	if response, err := b.client(weak).Get("https://own.com"); err == nil {
		response.Body.Close()
		t.Error("the modern profile accepts an old cipher")
	}
}

func TestWebSocketsAndCompression(t *testing.T) {
	t.Parallel()
	b := newFixture(t, map[string]string{"ROUTER_ENABLE_COMPRESSION": "true"})
	b.pod("web", "web", nil)
	b.route("web", "web.com", "web")
	listener, err := net.Listen("tcp", "127.0.2.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() { // an echo server after the protocol upgrade
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				reader := bufio.NewReader(connection)
				if _, err := http.ReadRequest(reader); err != nil {
					return
				}
				fmt.Fprint(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
				_, _ = io.Copy(connection, reader)
			}()
		}
	}()
	b.pods["socket"] = []string{listener.Addr().String()}
	b.route("socket", "socket.com", "socket")
	b.run()
	b.until("http://web.com", "web")
	connection, err := net.Dial("tcp", "127.0.0.1:"+b.writer.Settings.Text("ROUTER_SERVICE_HTTP_PORT"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprint(connection, "GET / HTTP/1.1\r\nHost: socket.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	reader := bufio.NewReader(connection)
	if response, err := http.ReadResponse(reader, nil); err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the protocol does not change: %v, %v", response, err)
	}
	fmt.Fprint(connection, "hello\n")
	if line, err := reader.ReadString('\n'); line != "hello\n" {
		t.Errorf("the response is %q: %v", line, err)
	}
	request, err := http.NewRequest(http.MethodGet, "http://web.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := b.client(nil).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.Header.Get("Content-Encoding") != "gzip" {
		t.Error("the response is not compressed")
	}
}

// customTemplate is a typical OpenShift 3.11 template.
const customTemplate = `{{ define "/var/lib/haproxy/conf/haproxy.config" }}
global
  stats socket /var/lib/haproxy/run/haproxy.sock mode 600 level admin expose-fd listeners
defaults
  mode http
  timeout connect {{ firstMatch "[1-9][0-9]*(us|ms|s|m|h|d)?" (env "ROUTER_DEFAULT_CONNECT_TIMEOUT" "") "5s" }}
  timeout client 10s
  timeout server 10s
frontend public
  bind :{{ env "ROUTER_SERVICE_HTTP_PORT" "80" }}
  http-request set-header X-Custom yes
{{- range .PeerEndpoints }}
  http-response set-header X-Peer {{ .IP }}:{{ .Port }}
{{- end }}
  use_backend %[base,map_reg(/var/lib/haproxy/conf/os_http_be.map)]
{{- range $cfgIdx, $cfg := .State }}
{{- if eq $cfg.TLSTermination "" }}
backend {{ genBackendNamePrefix $cfg.TLSTermination }}:{{ $cfgIdx }}
  http-response set-header X-Balance "is-{{ index $cfg.Annotations "haproxy.router.openshift.io/balance" }}"
  cookie {{ $cfg.RoutingKeyName }} insert indirect nocache httponly
  {{- range $serviceUnitName, $weight := $cfg.ServiceUnitNames }}
    {{- with $serviceUnit := index $.ServiceUnits $serviceUnitName }}
      {{- range $idx, $endpoint := processEndpointsForAlias $cfg $serviceUnit (env "ROUTER_BACKEND_PROCESS_ENDPOINTS" "") }}
  server {{ $endpoint.ID }} {{ $endpoint.IP }}:{{ $endpoint.Port }} cookie {{ $endpoint.IdHash }} weight {{ $weight }}
      {{- end }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}
{{ end }}
{{ define "/var/lib/haproxy/conf/os_http_be.map" -}}
{{ range $line := generateHAProxyMap "os_http_be.map" . }}{{ $line }}
{{ end }}{{ end }}
`

func TestCustomTemplates(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	file := filepath.Join(b.writer.Dir, "custom")
	if err := os.WriteFile(file, []byte(customTemplate), 0o600); err != nil {
		t.Fatal(err)
	}
	b.writer.Settings = b.writer.Settings.With(map[string]string{"TEMPLATE_FILE": file})
	b.pod("web", "web", nil)
	b.pod("test", "test", nil)
	b.route("web", "web.com", "web", annotated(annotationBalance, "mine"))
	b.route("path", "web.com/test", "test")
	b.peers = []model.Endpoint{{IP: "192.0.2.7", Port: "1936"}}
	b.run()
	b.until("http://web.com/testing", "web")
	b.until("http://web.com/test", "test")
	if _, _, header := b.get("http://web.com"); header.Get("X-Balance") != "is-mine" || header.Get("X-Peer") != "192.0.2.7:1936" {
		t.Errorf("the template's headers are %v", header)
	}
	b.pods["web"] = nil
	b.pod("web", "later", nil)
	b.apply()
	b.until("http://web.com", "later")
}

func TestStatisticsTimeout(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("unix", filepath.Join(dir, "run", "haproxy.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	engine := Engine{Dir: dir, StatsTimeout: time.Millisecond}
	_, err = engine.Stats()
	for _, err := range []error{err, engine.Alive()} {
		if timeoutErr := net.Error(nil); !errors.As(err, &timeoutErr) || !timeoutErr.Timeout() {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestReloadScript(t *testing.T) {
	b := newFixture(t, nil)
	script := filepath.Join(b.writer.Dir, "reload")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ncp conf/haproxy.config reloaded\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.engine.Script = script
	b.route("web", "web.com", "web")
	b.run()
	if got := text(t, filepath.Join(b.writer.Dir, "reloaded")); !strings.Contains(got, "be_http:shop:web") {
		t.Errorf("the script reads\n%s", got)
	}
}
