// Package supervisor runs the processes of a host: it starts the processes, restarts processes that
// exit, records the states that they report, and serves their combined state on a Unix socket. It
// does not depend on the purpose of the processes.
package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/slipway-platform/slipway/internal/memory"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// Supervisor runs processes and serves their status on a Unix socket that only root can open.
type Supervisor struct {
	processes []Process
	socket    string

	mu     sync.Mutex
	status Status
	stop   func()
	// restarts contains the channels for restart requests, keyed by process name.
	restarts map[string]chan struct{}
}

// New returns a supervisor for the processes, in the order in which they start. The status contains
// version and dataDir.
func New(version, dataDir, socket string, processes []Process) *Supervisor {
	s := &Supervisor{processes: processes, socket: socket, restarts: map[string]chan struct{}{}}
	now := time.Now()
	s.status = Status{Version: version, DataDir: dataDir, Started: now}
	for _, p := range processes {
		s.restarts[p.Name] = make(chan struct{}, 1)
		s.status.Processes = append(s.status.Processes, ProcessStatus{
			Name: p.Name, State: component.Starting, Since: now, Components: slices.Clone(p.Components),
		})
	}
	return s
}

// restart requests the restart of a process. It returns false if there is no process with this
// name.
func (s *Supervisor) restart(name string) bool {
	requests, exists := s.restarts[name]
	if !exists {
		return false
	}
	select {
	case requests <- struct{}{}:
	default: // a request is already pending
	}
	return true
}

// ErrStopped is the error that Run returns if a client has requested that the supervisor stop.
var ErrStopped = errors.New("stopped")

// Run supervises the processes until ctx is done, or returns ErrStopped after a client has
// requested a stop. It stops the processes one after the other, in the reverse order of their
// start.
func (s *Supervisor) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.stop = func() { stop(ErrStopped) }
	server, err := s.serve()
	if err != nil {
		return err
	}
	defer server.Close()
	defer s.feedWatchdog()()

	var stops []func()
	for _, p := range s.processes {
		processCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan struct{})
		go func() { defer close(done); s.supervise(processCtx, p) }()
		stops = append(stops, func() { cancel(); <-done })
	}
	if err := memory.ReleaseAfterStart(ctx); err != nil {
		slog.Warn("cannot release unused memory after the start", "error", err)
	}
	<-ctx.Done()
	_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping)
	slog.Info("stopping")
	for _, stop := range slices.Backward(stops) {
		stop()
	}
	if errors.Is(context.Cause(ctx), ErrStopped) {
		return ErrStopped
	}
	return nil
}
