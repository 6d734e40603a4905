package router

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// health is the subset of the engine's methods that report HAProxy's state.
type health interface {
	// Alive returns an error if HAProxy does not respond.
	Alive() error
	// Stats returns HAProxy's statistics in CSV format. It returns an error if HAProxy does not
	// respond.
	Stats() (string, error)
	// Page returns the path to the socket that serves HAProxy's statistics page.
	Page() string
}

// serve serves health checks, metrics and statistics until ctx is done. unready returns the reason
// why the router must not receive requests, or "".
func serve(ctx context.Context, address string, guard access, engine health, m *metrics,
	unready func() string) error {
	s := guard.settings
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen on ROUTER_LISTEN_ADDR: %w", err)
	}
	defer listener.Close()
	mux := http.NewServeMux()
	dead := func() string {
		if engine.Alive() != nil {
			return "HAProxy does not respond"
		}
		return ""
	}
	handleHealth(mux, dead, unready)
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

// handleHealth serves health checks. dead returns the reason why the router must be restarted.
// unready returns the reason why the router must not receive requests. Both functions return "" if
// there is no reason.
func handleHealth(mux *http.ServeMux, dead, unready func() string) {
	check := func(reasons ...func() string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for _, reason := range reasons {
				if text := reason(); text != "" {
					http.Error(w, text, http.StatusServiceUnavailable)
					return
				}
			}
			fmt.Fprintln(w, "ok")
		}
	}
	mux.HandleFunc("GET /healthz", check(dead))
	mux.HandleFunc("GET /healthz/ready", check(unready, dead))
}
