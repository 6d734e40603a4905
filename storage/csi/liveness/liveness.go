// Package liveness tells over HTTP whether CSI drivers are alive, as the community's livenessprobe does for one: a kubelet's
// probe of a driver's container asks it. One listener serves all drivers of a process.
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

// Path is where all drivers together are asked for; Path + "/" + a name is one of them.
const Path = "/healthz"

// Driver is one driver that is asked for.
type Driver interface {
	Identity() csi.IdentityClient
}

// Server is the part that answers. A request calls Probe of the drivers at once; nothing is called in between.
type Server struct {
	// Listener takes the requests; Run closes it.
	Listener net.Listener
	// Drivers are the drivers by the name in the path.
	Drivers map[string]Driver
	// Timeout is how long a driver may take; 3 s when zero, as the community's.
	Timeout time.Duration
}

// Name is the part's name.
func (s *Server) Name() string { return "csi-liveness" }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context, ready func()) error {
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	ready()
	if err := server.Serve(s.Listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve health of CSI drivers: %w", err)
	}
	return nil
}

// Handler answers 200 with "ok" when what the path names is alive, 503 with the reasons when it is not, and 404 for a driver
// that is not known.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, s.Drivers) })
	mux.HandleFunc("GET "+Path+"/{driver}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("driver")
		driver, known := s.Drivers[name]
		if !known {
			http.Error(w, fmt.Sprintf("no CSI driver %q is served here", name), http.StatusNotFound)
			return
		}
		s.answer(w, r, map[string]Driver{name: driver})
	})
	return mux
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, drivers map[string]Driver) {
	timeout := s.Timeout
	if timeout == 0 {
		timeout = 3 * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	if problems := probe(ctx, drivers); len(problems) > 0 {
		http.Error(w, strings.Join(problems, "\n"), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// probe asks the drivers at the same time and tells what is wrong with them, sorted.
func probe(ctx context.Context, drivers map[string]Driver) []string {
	answers := make(chan string, len(drivers))
	for name, driver := range drivers {
		go func() { answers <- problem(ctx, name, driver) }()
	}
	var problems []string
	for range drivers {
		if answer := <-answers; answer != "" {
			problems = append(problems, answer)
		}
	}
	slices.Sort(problems)
	return problems
}

func problem(ctx context.Context, name string, driver Driver) string {
	answer, err := driver.Identity().Probe(ctx, &csi.ProbeRequest{})
	switch {
	case err != nil:
		return fmt.Sprintf("probe CSI driver %q: %v", name, err)
	case answer.GetReady() != nil && !answer.GetReady().GetValue():
		return fmt.Sprintf("CSI driver %q is not ready", name)
	}
	return ""
}
