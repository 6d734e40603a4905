package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"
)

const (
	// handshakeTimeout is the maximum duration of a TLS handshake, and headerTimeout is the maximum
	// time until a response begins.
	handshakeTimeout, headerTimeout = 10 * time.Second, 15 * time.Second
	// maxHeaders is the maximum size of response headers, in bytes.
	maxHeaders = 64 << 10
	// maxIdle, maxIdlePerHost and idleTimeout are limits on idle connections.
	maxIdle, maxIdlePerHost, idleTimeout = 16, 4, 15 * time.Second
	// maxRedirects is the maximum number of consecutive redirects.
	maxRedirects = 5
)

// Transport sends HTTP requests over a dialer's connections. It uses the proxies that the
// environment variables specify. It returns an error for a request through a proxy if the policy
// does not allow the server's address.
//
// Transport uses only HTTP/1.1, so that a server cannot make it buffer more of a response than was
// read.
type Transport struct {
	dialer          *Dialer
	proxy           func(*url.URL) (*url.URL, error)
	direct, proxied *http.Transport
}

// Transport returns a transport. If insecure is set, the transport accepts every certificate.
func (d *Dialer) Transport(insecure bool) *Transport {
	return d.TransportTLS(&tls.Config{InsecureSkipVerify: insecure})
}

// TransportTLS returns a transport with the given TLS configuration, whose minimum version it
// raises to TLS 1.2.
func (d *Dialer) TransportTLS(config *tls.Config) *Transport {
	proxy := httpproxy.FromEnvironment().ProxyFunc()
	t := &Transport{dialer: d, proxy: proxy, direct: bounded(config), proxied: bounded(config)}
	t.direct.DialContext = d.DialContext
	t.proxied.DialContext = d.trusted
	t.proxied.Proxy = func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
	return t
}

// SetHeaderTimeout changes the maximum time until a response begins, for servers that do work
// before they respond. Call it before the first request.
func (t *Transport) SetHeaderTimeout(timeout time.Duration) {
	t.direct.ResponseHeaderTimeout, t.proxied.ResponseHeaderTimeout = timeout, timeout
}

// SkipProxy makes the transport ignore the environment's proxies. Call it before the first request.
func (t *Transport) SkipProxy() { t.proxy = func(*url.URL) (*url.URL, error) { return nil, nil } }

func bounded(config *tls.Config) *http.Transport {
	config = config.Clone()
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Transport{
		Protocols: protocols, TLSClientConfig: config,
		TLSHandshakeTimeout: handshakeTimeout, ResponseHeaderTimeout: headerTimeout, MaxResponseHeaderBytes: maxHeaders,
		MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdlePerHost, IdleConnTimeout: idleTimeout, DisableCompression: true,
	}
}

// RoundTrip sends a request. If the policy does not allow the server, it returns a *Refused.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if redirects(request) > maxRedirects {
		return nil, fmt.Errorf("the server redirects more than %d times", maxRedirects)
	}
	proxy, err := t.proxy(request.URL)
	if err != nil {
		return nil, errors.New("the proxy in the environment variables is not a valid URL")
	}
	if proxy == nil {
		return t.direct.RoundTrip(request)
	}
	if !t.dialer.behindProxy(request.Context(), request.URL) {
		return nil, &Refused{request.URL.Host}
	}
	return t.proxied.RoundTrip(request)
}

// CloseIdleConnections closes idle connections.
func (t *Transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.proxied.CloseIdleConnections()
}

// redirects counts the redirects that led to a request.
func redirects(request *http.Request) (count int) {
	for request.Response != nil && request.Response.Request != nil {
		request = request.Response.Request
		count++
	}
	return count
}

// behindProxy reports whether the policy allows a request to a URL through a proxy. It allows names
// that the host cannot resolve, because the proxy might resolve them.
func (d *Dialer) behindProxy(ctx context.Context, to *url.URL) bool {
	port := to.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[to.Scheme]
	}
	if d.isListed(net.JoinHostPort(to.Hostname(), port)) {
		return true
	}
	if ip, err := netip.ParseAddr(to.Hostname()); err == nil {
		return d.Allowed(ip)
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", to.Hostname())
	if err != nil {
		return true
	}
	for _, address := range addresses {
		if !d.Allowed(address) {
			return false
		}
	}
	return true
}
