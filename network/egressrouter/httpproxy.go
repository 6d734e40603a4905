package egressrouter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"time"
)

const (
	dialTimeout   = 30 * time.Second
	headerTimeout = 30 * time.Second
	idleTimeout   = 2 * time.Minute
)

// errDenied means that the rules allow none of a server's addresses.
var errDenied = errors.New("EGRESS_HTTP_PROXY_DESTINATION does not allow this server")

// proxyHTTP serves an HTTP proxy until ctx is done.
func proxyHTTP(ctx context.Context, address string, access Access, log *slog.Logger) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serve HTTP proxy: %w", err)
	}
	log.InfoContext(ctx, "HTTP proxy is ready", "address", listener.Addr())
	return serveHTTP(ctx, listener, newProxy(access, outside(), log))
}

func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve HTTP proxy: %w", err)
	}
	return nil
}

// proxy forwards requests that have an absolute URL, and tunnels connections (CONNECT).
type proxy struct {
	access  Access
	log     *slog.Logger
	forward *httputil.ReverseProxy
	// suffix is the suffix of Go's network names for the families in which the proxy connects.
	suffix string
	// lookup resolves a name to addresses.
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

func newProxy(access Access, suffix string, log *slog.Logger) *proxy {
	p := &proxy{access: access, log: log, suffix: suffix, lookup: net.DefaultResolver.LookupNetIP}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.Out.URL.Host },
		// Do not set Proxy: the proxy settings in the environment must not apply, because the proxy
		// checks access to the server to which it connects.
		Transport:    &http.Transport{DialContext: p.dial, DisableCompression: true, IdleConnTimeout: idleTimeout},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { p.fail(w, r, r.URL.Host, err) },
		// Flush without a delay, for event streams and long polls.
		FlushInterval: -1,
	}
	return p
}

// ServeHTTP handles a client's request.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.forward.ServeHTTP(w, r)
	default:
		http.Error(w, "this is an HTTP proxy; set http_proxy and https_proxy in the client", http.StatusBadRequest)
	}
}

// tunnel connects the client to the server that the request specifies.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	server, err := p.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		p.fail(w, r, r.Host, err)
		return
	}
	defer server.Close()
	client, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.fail(w, r, r.Host, err)
		return
	}
	defer client.Close()
	if _, err := client.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	// The client might already have sent data.
	early := make([]byte, buffer.Reader.Buffered())
	_, _ = buffer.Read(early)
	if _, err := server.Write(early); err != nil {
		return
	}
	join(client, server)
}

func (p *proxy) fail(w http.ResponseWriter, r *http.Request, server string, err error) {
	status := http.StatusBadGateway
	if errors.Is(err, errDenied) {
		status = http.StatusForbidden
	}
	p.log.WarnContext(r.Context(), "cannot connect client to server", "address", server, "error", err)
	http.Error(w, fmt.Sprintf("connect to %s: %v", server, err), status)
}

// dial connects to an address of a server if the rules allow the address. It connects to the same
// address that it checked, so that a name whose addresses change cannot bypass the rules.
func (p *proxy) dial(ctx context.Context, _, server string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addresses, err := p.lookup(ctx, "ip"+p.suffix, host)
	if err != nil {
		// Return the same error for all names that are not allowed, so that clients cannot
		// determine which names exist.
		if !p.access.allows(host, netip.Addr{}) {
			return nil, errDenied
		}
		return nil, err
	}
	err = errDenied
	for _, address := range addresses {
		if !p.access.allows(host, address.Unmap()) {
			continue
		}
		var conn net.Conn
		if conn, err = new(net.Dialer).DialContext(ctx, "tcp"+p.suffix, net.JoinHostPort(address.Unmap().String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}
