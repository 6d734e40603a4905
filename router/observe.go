package router

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// health is the part of the engine that reports HAProxy's state.
type health interface {
	// Alive returns an error if HAProxy does not respond.
	Alive() error
	// Stats returns HAProxy's statistics as CSV. It fails if HAProxy does not respond.
	Stats() (string, error)
	// Page returns the path of the socket that serves HAProxy's statistics page.
	Page() string
}

// serve serves health checks, metrics and statistics until ctx ends. unready returns why the router
// must not get requests, or "".
func serve(ctx context.Context, address string, guard access, engine health, m *metrics,
	unready func() string) error {
	s := guard.settings
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen on ROUTER_LISTEN_ADDR: %w", err)
	}
	defer listener.Close()
	mux := http.NewServeMux()
	alive := func(w http.ResponseWriter, _ *http.Request) {
		if err := engine.Alive(); err != nil {
			http.Error(w, "HAProxy does not respond", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	}
	mux.HandleFunc("GET /healthz", alive)
	mux.HandleFunc("GET /healthz/ready", func(w http.ResponseWriter, r *http.Request) {
		if reason := unready(); reason != "" {
			http.Error(w, reason, http.StatusServiceUnavailable)
			return
		}
		alive(w, r)
	})
	if s.Text("ROUTER_METRICS_TYPE") == "haproxy" {
		mux.Handle("GET /metrics", guard.guardMetrics(m.handler(newCollector(s, engine.Stats))))
	}
	page := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "haproxy"}) },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", engine.Page())
		}},
	}
	mux.Handle("/", guard.guard(page))
	return serveAll(ctx, s, listener, mux)
}
