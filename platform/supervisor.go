package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Supervisor runs the processes of a host and answers, on a Unix socket that only root can open, how
// they are.
type Supervisor struct {
	processes []process
	socket    string

	mu     sync.Mutex
	status Status
	stop   func()
}

func newSupervisor(version, dataDir, socket string, processes []process) *Supervisor {
	s := &Supervisor{processes: processes, socket: socket}
	now := time.Now()
	s.status = Status{Version: version, DataDir: dataDir, Started: now}
	for _, p := range processes {
		s.status.Processes = append(s.status.Processes, ProcessStatus{
			Name: p.name, State: Starting, Since: now, Parts: slices.Clone(p.parts),
		})
	}
	return s
}

// errStopped says that someone asked for the stop over the socket.
var errStopped = errors.New("stopped")

// Run supervises until ctx ends, or returns errStopped after someone asked for a stop over the socket.
// The node's process is stopped first and the control plane last, so that each can still say goodbye
// to the other.
func (s *Supervisor) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.stop = func() { stop(errStopped) }
	server, err := s.serve()
	if err != nil {
		return err
	}
	defer server.Close()

	// Each process has a context of its own, and a process that was started later stops earlier.
	var stops []func()
	for _, p := range s.processes {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan struct{})
		go func() { defer close(done); s.supervise(own, p) }()
		stops = append(stops, func() { cancel(); <-done })
	}
	releaseMemory(ctx)
	<-ctx.Done()
	_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping)
	slog.Info("stopping")
	for _, stop := range slices.Backward(stops) {
		stop()
	}
	if errors.Is(context.Cause(ctx), errStopped) {
		return errStopped
	}
	return nil
}

// serve answers GET /status and POST /stop on the socket.
func (s *Supervisor) serve() (*http.Server, error) {
	if err := os.Remove(s.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	listener, err := net.Listen("unix", s.socket)
	if err != nil {
		return nil, fmt.Errorf("listen for status requests: %w", err)
	}
	if err := os.Chmod(s.socket, 0o600); err != nil {
		return nil, fmt.Errorf("protect status socket: %w", err)
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
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("status socket failed", "error", err)
		}
	}()
	return server, nil
}

// snapshot is the state of all processes now.
func (s *Supervisor) snapshot() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	status.Processes = slices.Clone(status.Processes)
	status.Ready = true
	for i := range status.Processes {
		process := &status.Processes[i]
		process.Parts = slices.Clone(process.Parts)
		status.Ready = status.Ready && process.State == Ready
	}
	return status
}

// process finds a process's record; the caller holds the lock.
func (s *Supervisor) process(name string) *ProcessStatus {
	i := slices.IndexFunc(s.status.Processes, func(p ProcessStatus) bool { return p.Name == name })
	return &s.status.Processes[i]
}

func (s *Supervisor) began(name string, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	process := s.process(name)
	process.PID, process.State, process.Since = pid, Starting, time.Now()
	for i := range process.Parts {
		process.Parts[i].State, process.Parts[i].Error = Waiting, ""
	}
}

func (s *Supervisor) ended(name, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	process := s.process(name)
	process.PID, process.Since = 0, time.Now()
	if reason == "" {
		process.State = Stopped
		return
	}
	process.State, process.LastError = Failed, reason
	process.Restarts++
	for i := range process.Parts {
		if process.Parts[i].State != Failed {
			process.Parts[i].State = Stopped
		}
	}
}

// record notes an event, and tells systemd when the last part has become ready.
func (s *Supervisor) record(name string, event Event) {
	before := s.snapshot().Ready
	s.mu.Lock()
	s.process(name).apply(event, time.Now())
	s.mu.Unlock()
	if !before && s.snapshot().Ready { // not when a part only notes something
		slog.Info("all parts are ready")
		_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
	}
}
