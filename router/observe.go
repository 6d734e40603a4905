package router

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// health is what is asked of a router's state.
type health interface {
	// Alive is an error when HAProxy does not answer.
	Alive() error
	// Stats is HAProxy's statistics as CSV, and an error when it does not answer.
	Stats() (string, error)
	// Page is the socket of HAProxy's page of statistics.
	Page() string
}

// serve answers health, metrics and statistics until ctx ends. unready says why the
// router is not to be sent requests; nothing when it is.
func serve(ctx context.Context, address string, who access, engine health, m *metrics, unready func() string) error {
	s := who.settings
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen on ROUTER_LISTEN_ADDR: %w", err)
	}
	defer listener.Close()
	mux := http.NewServeMux()
	alive := func(w http.ResponseWriter, _ *http.Request) {
		if err := engine.Alive(); err != nil {
			http.Error(w, "HAProxy does not answer", http.StatusServiceUnavailable)
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
		mux.Handle("GET /metrics", who.guardMetrics(m.handler(newCollector(s, engine.Stats))))
	}
	page := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "haproxy"}) },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", engine.Page())
		}},
	}
	mux.Handle("/", who.guard(page))
	return serveAll(ctx, s, listener, mux)
}
