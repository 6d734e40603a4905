// Package liveness serves the HTTP endpoints for the liveness probes of CSI drivers' containers,
// like the community's livenessprobe. One listener serves all drivers in a process.
package liveness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Path is the URL path that probes all drivers. Path + "/" + name probes one driver.
const Path = "/healthz"

// Driver is a driver whose liveness is probed.
type Driver interface {
	Identity() csi.IdentityClient
}

// Server is the component that serves the liveness endpoints of CSI drivers. It probes the drivers
// only when it receives a request.
type Server struct {
	// Listener accepts the requests. Run closes the listener.
	Listener net.Listener
	// Drivers maps names in the path to drivers.
	Drivers map[string]Driver
	// Timeout is the timeout of a probe. The default is 3 s, as in the community's livenessprobe.
	Timeout time.Duration
}

// Name returns the component's name.
func (s *Server) Name() string { return "csi-liveness" }

// Run serves until ctx is done.
func (s *Server) Run(ctx context.Context, ready func()) error {
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	ready()
	if err := server.Serve(s.Listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve CSI driver health: %w", err)
	}
	return nil
}

// Handler returns a handler that responds with 200 and "ok" if the drivers are alive, with 503 and
// the reasons if any driver is not alive, and with 404 if the driver is unknown.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) { s.respond(w, r, s.Drivers) })
	mux.HandleFunc("GET "+Path+"/{driver}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("driver")
		driver, ok := s.Drivers[name]
		if !ok {
			http.Error(w, fmt.Sprintf("unknown CSI driver %q", name), http.StatusNotFound)
			return
		}
		s.respond(w, r, map[string]Driver{name: driver})
	})
	return mux
}

func (s *Server) respond(w http.ResponseWriter, r *http.Request, drivers map[string]Driver) {
	timeout := s.Timeout
	if timeout == 0 {
		timeout = 3 * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	if messages := probe(ctx, drivers); len(messages) > 0 {
		http.Error(w, strings.Join(messages, "\n"), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// probe probes the drivers concurrently and returns their problems in sorted order.
func probe(ctx context.Context, drivers map[string]Driver) []string {
	results := make(chan string, len(drivers))
	for name, driver := range drivers {
		go func() { results <- probeDriver(ctx, name, driver) }()
	}
	var messages []string
	for range drivers {
		if result := <-results; result != "" {
			messages = append(messages, result)
		}
	}
	slices.Sort(messages)
	return messages
}

func probeDriver(ctx context.Context, name string, driver Driver) string {
	resp, err := driver.Identity().Probe(ctx, &csi.ProbeRequest{})
	switch {
	case err != nil:
		return fmt.Sprintf("probe CSI driver %q: %v", name, err)
	case resp.GetReady() != nil && !resp.GetReady().GetValue():
		return fmt.Sprintf("CSI driver %q is not ready", name)
	}
	return ""
}
