package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/slipway-platform/slipway/internal/unixsocket"
)

// serve starts the server for GET /status, POST /stop and POST /restart/{process} on the socket.
func (s *Supervisor) serve() (*http.Server, error) {
	listener, err := unixsocket.Listen(s.socket)
	if err != nil {
		return nil, fmt.Errorf("listen for status requests: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.snapshot())
	})
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		s.stop()
	})
	mux.HandleFunc("POST /restart/{process}", func(w http.ResponseWriter, r *http.Request) {
		if !s.restart(r.PathValue("process")) {
			http.Error(w, "the process does not exist", http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("status socket failed", "error", err)
		}
	}()
	return server, nil
}
