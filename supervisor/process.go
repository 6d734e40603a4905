package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-platform/slipway/internal/cgroup"
	"github.com/slipway-platform/slipway/internal/memory"
	"github.com/slipway-platform/slipway/supervisor/component"
	"github.com/slipway-platform/slipway/supervisor/logfile"
)

// ReportDescriptor is the file descriptor that a process writes its components' events to.
const ReportDescriptor = 3

// Process describes a program that a supervisor runs.
type Process struct {
	Name string
	// Components lists the process's components for the status.
	Components []ComponentStatus
	// Command contains the program's absolute path and its arguments. The supervisor sets the
	// process's output and adds ReportDescriptor.
	Command []string
	// WaitReady returns when the process is ready to serve. It is nil for a process that reports
	// its own events.
	WaitReady func(context.Context) error `json:"-"`
	// StopTimeout is how long the process can take to exit after SIGTERM before it is killed.
	StopTimeout time.Duration
	// LogFile is the file for the process's output.
	LogFile string
	// Cgroup is the cgroup in which the process runs.
	Cgroup string
}

const (
	minBackoff = 500 * time.Millisecond
	maxBackoff = 30 * time.Second
	// backoffResetPeriod is the run time after which the backoff is reset to the minimum.
	backoffResetPeriod = time.Minute
	// lastReportsTimeout limits how long the supervisor reads the remaining events after a process
	// has exited.
	lastReportsTimeout = 100 * time.Millisecond
)

// errRestart is the reason for stopping a process if a client has requested a restart.
var errRestart = errors.New("a restart was requested")

// supervise runs the process until ctx is done. It restarts the process with backoff whenever the
// process exits, and without delay when a client requests a restart.
func (s *Supervisor) supervise(ctx context.Context, p Process) {
	backoff := minBackoff
	for {
		start := time.Now()
		err := s.runUntilRestart(ctx, p)
		if ctx.Err() != nil {
			s.recordEnd(p.Name, "")
			return
		}
		if errors.Is(err, errRestart) {
			slog.Info("restarting process on request", "process", p.Name)
			s.recordEnd(p.Name, "")
			backoff = minBackoff
			continue
		}
		s.recordEnd(p.Name, err.Error())
		slog.Error("process exited and will be restarted", "process", p.Name, "error", err, "retryAfter", backoff)
		if time.Since(start) > backoffResetPeriod {
			backoff = minBackoff
		}
		select {
		case <-time.After(backoff):
		case <-s.restarts[p.Name]:
		case <-ctx.Done():
			return
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// runUntilRestart is like runOnce but also stops the process when a client requests a restart. In
// this case, it returns errRestart.
func (s *Supervisor) runUntilRestart(ctx context.Context, p Process) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-s.restarts[p.Name]:
			cancel(errRestart)
		case <-ctx.Done():
		}
	})
	err := s.runOnce(ctx, p)
	cancel(nil)
	watch.Wait()
	if errors.Is(context.Cause(ctx), errRestart) {
		return errRestart
	}
	return err
}

// runOnce starts the process, records its events, and returns the reason why it exited. When ctx is
// done, runOnce stops the process.
func (s *Supervisor) runOnce(ctx context.Context, p Process) error {
	// The kernel kills the process when the thread that started it exits (Pdeathsig), so the thread
	// must not exit.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	process, reports, err := start(p)
	if err != nil {
		return err
	}
	defer reports.Close()
	if err := cgroup.Add(p.Cgroup, process.Pid); err != nil {
		slog.Warn("process runs outside its cgroup", "process", p.Name, "error", err)
	}
	s.recordStart(p.Name, process.Pid)
	slog.Info("process started", "process", p.Name, "pid", process.Pid)

	reportsDone := make(chan struct{})
	go func() { defer close(reportsDone); s.readReports(p.Name, reports) }()
	readyCtx, stopWaiting := context.WithCancel(ctx)
	readyDone := make(chan struct{})
	go func() { defer close(readyDone); s.awaitReady(readyCtx, p, process.Pid) }()
	stopped := make(chan struct{})
	go terminate(ctx, process.Process, p.StopTimeout, stopped)

	err = process.wait()
	close(stopped)
	stopWaiting()
	<-readyDone
	// The pipe already contains all events from the process. Reading has a deadline, because a
	// program that the process started can keep the other end of the pipe open while it runs.
	_ = reports.SetReadDeadline(time.Now().Add(lastReportsTimeout))
	<-reportsDone
	return s.endReason(p.Name, err)
}

// running is a process with its log file.
type running struct {
	*os.Process
	command *exec.Cmd
	output  *os.File
}

func (r *running) wait() error {
	defer r.output.Close()
	return r.command.Wait()
}

// start starts a process and returns it with its event pipe.
func start(p Process) (process *running, reports *os.File, err error) {
	output, err := logfile.Open(p.LogFile)
	if err != nil {
		return nil, nil, err
	}
	reports, writer, err := os.Pipe()
	if err != nil {
		output.Close()
		return nil, nil, fmt.Errorf("create report pipe: %w", err)
	}
	command := exec.Command(p.Command[0], p.Command[1:]...)
	command.Stdout, command.Stderr = output, output
	command.Env = withoutSystemd(command.Environ())
	command.ExtraFiles = []*os.File{writer} // becomes ReportDescriptor
	command.SysProcAttr = processAttributes()
	err = command.Start()
	writer.Close()
	if err != nil {
		output.Close()
		reports.Close()
		return nil, nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	return &running{command.Process, command, output}, reports, nil
}

// processAttributes returns the attributes that cause the kernel to kill a process when the
// supervisor exits.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// withoutSystemd removes the environment variables that a process uses to notify systemd.
// Otherwise, libraries such as the API server's would report the whole service as ready.
func withoutSystemd(environment []string) []string {
	return slices.DeleteFunc(environment, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}, name)
	})
}

// terminate sends SIGTERM to the process when ctx is done, and kills the process after the timeout.
func terminate(ctx context.Context, process *os.Process, timeout time.Duration, stopped <-chan struct{}) {
	select {
	case <-stopped:
		return
	case <-ctx.Done():
	}
	_ = process.Signal(syscall.SIGTERM)
	select {
	case <-stopped:
	case <-time.After(timeout):
		slog.Warn("process did not stop in time; killing it", "pid", process.Pid, "duration", timeout)
		_ = process.Kill()
	}
}

// readReports records a process's events until the process closes the pipe.
func (s *Supervisor) readReports(name string, reports io.Reader) {
	lines := bufio.NewScanner(reports)
	for lines.Scan() {
		var event component.Event
		if json.Unmarshal(lines.Bytes(), &event) == nil {
			s.recordEvent(name, event)
		}
	}
}

// awaitReady records the events of a process that does not report its own events. It also releases
// the process's program from memory after the start, because the process does not do so itself.
func (s *Supervisor) awaitReady(ctx context.Context, p Process, pid int) {
	if p.WaitReady == nil {
		return
	}
	s.recordEvent(p.Name, component.Event{Component: p.Name, State: component.Starting})
	if p.WaitReady(ctx) != nil {
		return
	}
	s.recordEvent(p.Name, component.Event{Component: p.Name, State: component.Ready})
	if err := memory.ReleaseProgram(ctx, pid); err != nil {
		slog.Warn("cannot release the memory of a process's program file", "process", p.Name, "error", err)
	}
}

// endReason returns the error of the component that failed. If no component failed, the error
// describes how the process exited and the components that were starting.
func (s *Supervisor) endReason(name string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var starting []string
	for _, c := range s.process(name).Components {
		if c.State == component.Failed && c.Error != "" {
			return errors.New(c.Error)
		}
		if c.State == component.Starting {
			starting = append(starting, c.Name)
		}
	}
	reason := "the process ended without an error"
	if err != nil {
		reason = "the process ended: " + strings.TrimPrefix(err.Error(), "signal: ")
	}
	if len(starting) > 0 {
		reason += " while " + strings.Join(starting, ", ") + " started"
	}
	return errors.New(reason)
}
