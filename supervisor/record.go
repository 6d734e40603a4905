package supervisor

import (
	"log/slog"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/slipway-platform/slipway/supervisor/component"
)

// snapshot returns the current status.
func (s *Supervisor) snapshot() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	status.Processes = slices.Clone(status.Processes)
	status.Ready = true
	for i := range status.Processes {
		process := &status.Processes[i]
		process.Components = slices.Clone(process.Components)
		status.Ready = status.Ready && process.State == component.Ready
	}
	return status
}

// process returns a pointer to a process's status. The caller must hold the lock.
func (s *Supervisor) process(name string) *ProcessStatus {
	i := slices.IndexFunc(s.status.Processes, func(p ProcessStatus) bool { return p.Name == name })
	return &s.status.Processes[i]
}

func (s *Supervisor) recordStart(name string, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	process := s.process(name)
	process.PID, process.State, process.Since = pid, component.Starting, time.Now()
	for i := range process.Components {
		process.Components[i].State, process.Components[i].Error = component.Waiting, ""
	}
}

// recordEnd records that a process has exited. reason is "" if the supervisor stopped the process.
func (s *Supervisor) recordEnd(name, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	process := s.process(name)
	process.PID, process.Since = 0, time.Now()
	if reason == "" {
		process.State = component.Stopped
		return
	}
	process.State, process.LastError = component.Failed, reason
	process.Restarts++
	for i := range process.Components {
		if process.Components[i].State != component.Failed {
			process.Components[i].State = component.Stopped
		}
	}
}

// recordEvent records an event, and notifies systemd when the last component has become ready.
func (s *Supervisor) recordEvent(name string, event component.Event) {
	before := s.snapshot().Ready
	s.mu.Lock()
	s.process(name).apply(event, time.Now())
	s.mu.Unlock()
	if !before && s.snapshot().Ready { // true only when the last component becomes ready
		slog.Info("all components are ready")
		_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
	}
}
