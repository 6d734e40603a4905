package haproxy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"text/template"

	"github.com/slipway-platform/slipway/router/model"
)

// suites contains the ciphers and the oldest TLS version for each profile in ROUTER_CIPHERS,
// according to Mozilla's recommendations for servers. The old profile sets OpenSSL's lowest
// security level, which old clients need.
var suites = map[string]struct{ ciphers, oldest string }{
	"modern": {"ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:" +
		"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256", "TLSv1.2"},
	"intermediate": {"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:" +
		"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:" +
		"ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA:ECDHE-RSA-AES256-SHA:" +
		"AES128-GCM-SHA256:AES256-GCM-SHA384:AES128-SHA:AES256-SHA", "TLSv1.2"},
	"old": {"ALL:!aNULL:!eNULL:!EXPORT:!RC4:!MD5:!PSK:!SRP:@SECLEVEL=0", "TLSv1.0"},
}

// sniSocket and noSNISocket are the sockets through which HAProxy passes TLS connections to itself,
// with the PROXY protocol. Only HAProxy's user can connect to them. Their paths are relative to
// HAProxy's working directory, because that user cannot search the directories above it.
const sniSocket, noSNISocket = "run/sni.sock", "run/no-sni.sock"

// frame returns the configuration text before the backends.
func (w *Writer) frame(bind bool) (string, error) {
	s := w.Settings
	ciphers, oldest := s.Text("ROUTER_CIPHERS"), "TLSv1.2"
	if suite, ok := suites[ciphers]; ok {
		ciphers, oldest = suite.ciphers, suite.oldest
	}
	data := map[string]any{
		"WorkingDir": w.Dir, "User": w.User, "SNISocket": sniSocket, "NoSNISocket": noSNISocket, "Ciphers": ciphers, "MinTLS": oldest, "BindPorts": bind,
		"DefaultCertificate": filepath.Join(w.Dir, defaultCertificateFile), "ClientAuth": w.clientAuth(),
		"HTTP": w.binds("ROUTER_SERVICE_HTTP_PORT"), "HTTPS": w.binds("ROUTER_SERVICE_HTTPS_PORT"),
		"StatsPort": w.statsPort(), "StatsUser": s.Text("STATS_USERNAME"), "StatsAuth": s.Text("STATS_USERNAME") + ":" + s.Text("STATS_PASSWORD"),
	}
	parsed, err := template.New("frame").Funcs(functions(s)).Parse(frameTemplate)
	if err != nil {
		return "", fmt.Errorf("parse template: %w", err)
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, data); err != nil {
		return "", fmt.Errorf("write configuration: %w", err)
	}
	return text.String(), nil
}

// binds returns the addresses for a public port, with their options.
func (w *Writer) binds(port string) []string {
	options := ""
	if w.Settings.On("ROUTER_USE_PROXY_PROTOCOL") {
		options = " accept-proxy"
	}
	number := portOf(w.Settings, port)
	return map[string][]string{
		"v4": {":" + number + options},
		"v6": {":::" + number + " v6only" + options},
		// Use two sockets, so that applications see IPv4 addresses in IPv4 form.
		"v4v6": {":" + number + options, ":::" + number + " v6only" + options},
	}[w.Settings.Text("ROUTER_IP_V4_V6_MODE")]
}

// clientAuth returns the bind line options that request client certificates.
func (w *Writer) clientAuth() string {
	s := w.Settings
	mode := s.Text("ROUTER_MUTUAL_TLS_AUTH")
	if mode == "none" || s.Text("ROUTER_MUTUAL_TLS_AUTH_CA") == "" {
		return ""
	}
	words := " verify " + mode + " ca-file " + quoted(s.Text("ROUTER_MUTUAL_TLS_AUTH_CA"))
	if list := s.Text("ROUTER_MUTUAL_TLS_AUTH_CRL"); list != "" {
		words += " crl-file " + quoted(list)
	}
	return words
}

// statsPort returns the port for HAProxy's own statistics page. It returns 0 if no port is
// configured or if the router's own server uses the port.
func (w *Writer) statsPort() int {
	number := w.Settings.Number("STATS_PORT")
	if _, listen, err := net.SplitHostPort(w.Settings.Text("ROUTER_LISTEN_ADDR")); err == nil && listen == fmt.Sprint(number) {
		return 0
	}
	return number
}

// ordered sorts endpoints according to ROUTER_BACKEND_PROCESS_ENDPOINTS.
func ordered(endpoints []model.Endpoint, shuffle bool) []model.Endpoint {
	if !shuffle {
		return endpoints
	}
	shuffled := slices.Clone(endpoints)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled
}

const page503 = "HTTP/1.0 503 Service Unavailable\r\nCache-Control: no-cache\r\nConnection: close\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" +
	`<!doctype html><title>Not available</title><h1>The application is not available</h1><p>The host has a route, but no pod is available.</p>` + "\n"

const pageUnknown = `<!doctype html><title>Not available</title><h1>There is no application here</h1>` +
	`<p>No route serves this address: the route might not exist, might not be admitted, or might be served over HTTPS only.</p>` + "\n"
