// Package profile serves the Go profiles of a process on a Unix socket: CPU time, heap, goroutines
// and others, in the format of `go tool pprof`.
package profile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/unixsocket"
)

// CPU is the name of the CPU time profile. CPU time is measured while the client waits.
const CPU = "cpu"

// Serve serves this process's profiles on a socket until ctx is done. Only the socket's owner can
// connect.
func Serve(ctx context.Context, socket string) error {
	listener, err := unixsocket.Listen(socket)
	if err != nil {
		return fmt.Errorf("listen for profile requests: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /"+CPU, pprof.Profile)
	mux.HandleFunc("GET /{name}", func(w http.ResponseWriter, r *http.Request) {
		pprof.Handler(r.PathValue("name")).ServeHTTP(w, r)
	})
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve profiles: %w", err)
	}
	return nil
}

// Request is a request for a profile.
type Request struct {
	// Name is CPU or the name of one of Go's profiles, such as "heap" or "goroutine".
	Name string
	// Duration is how long CPU time is measured.
	Duration time.Duration
	// Text requests human-readable text instead of a file for `go tool pprof`.
	Text bool
}

// Write writes a profile of the process that listens on a socket to w.
func Write(ctx context.Context, w io.Writer, socket string, request Request) error {
	query := url.Values{}
	switch {
	case request.Name == CPU:
		query.Set("seconds", strconv.Itoa(max(1, int(request.Duration.Seconds()))))
	case request.Text:
		query.Set("debug", "1")
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	address := "http://profile/" + url.PathEscape(request.Name) + "?" + query.Encode()
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("request profile %q: %w", request.Name, err)
	}
	response, err := client.Do(get)
	if err != nil {
		return fmt.Errorf("request profile %q: %w", request.Name, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return fmt.Errorf("request profile %q: %s", request.Name, strings.TrimSpace(string(reason)))
	}
	if _, err := io.Copy(w, response.Body); err != nil {
		return fmt.Errorf("read profile %q: %w", request.Name, err)
	}
	return nil
}
