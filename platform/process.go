package platform

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
	"syscall"
	"time"

	"github.com/slipway-platform/slipway/internal/cgroup"
)

// process is one program below the supervisor.
type process struct {
	name string
	// parts are the rows of the process's table, for display.
	parts []PartStatus
	// command makes the program anew for each start. The supervisor adds output and life line.
	command func() (*exec.Cmd, error)
	// waitReady, for a program that does not report by itself, returns when it serves.
	waitReady func(context.Context) error
	// stopGrace is how long the program may take after SIGTERM before it is killed.
	stopGrace time.Duration
	// logFile is where its output goes.
	logFile string
	// group is the control group that it runs in.
	group string
}

// restart delays: the first restart is at once enough for a person, the last one rare enough for a log.
const (
	firstDelay = 500 * time.Millisecond
	lastDelay  = 30 * time.Second
	// lastReports is how long the reports of a process that has ended are read.
	lastReports = 100 * time.Millisecond
	// calmAfter is how long a process must have run for its delay to begin anew.
	calmAfter = time.Minute
)

// supervise runs the process until ctx ends, and starts it again when it ends before.
func (s *Supervisor) supervise(ctx context.Context, p process) {
	delay := firstDelay
	for {
		began := time.Now()
		err := s.runOnce(ctx, p)
		if ctx.Err() != nil {
			s.ended(p.name, "")
			return
		}
		s.ended(p.name, err.Error())
		slog.Error("process ended and is started again", "process", p.name, "error", err, "delay", delay)
		if time.Since(began) > calmAfter {
			delay = firstDelay
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return
		}
		delay = min(2*delay, lastDelay)
	}
}

// runOnce starts the process, follows its reports, and returns what it ended with. When ctx ends it is
// told to stop, and killed after its grace.
func (s *Supervisor) runOnce(ctx context.Context, p process) error {
	// The kernel ends the child when the thread that started it ends: the goroutine keeps its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	command, err := p.command()
	if err != nil {
		return err
	}
	output, err := openLog(p.logFile)
	if err != nil {
		return err
	}
	defer output.Close()
	reports, lifeLine, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make report pipe: %w", err)
	}
	defer reports.Close()
	command.Stdout, command.Stderr = output, output
	command.Env = withoutSystemd(command.Environ())
	command.ExtraFiles = []*os.File{lifeLine}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err = command.Start()
	lifeLine.Close()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	if err := cgroup.Add(p.group, command.Process.Pid); err != nil {
		slog.Warn("process has no share of the machine of its own", "process", p.name, "error", err)
	}
	s.began(p.name, command.Process.Pid)
	slog.Info("process started", "process", p.name, "pid", command.Process.Pid)

	following := make(chan struct{})
	go func() { defer close(following); s.follow(p.name, reports) }()
	waiting, stopWaiting := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); s.watchReady(waiting, p) }()
	stopped := make(chan struct{})
	go terminate(ctx, command.Process, p.stopGrace, stopped)

	err = command.Wait()
	close(stopped)
	stopWaiting()
	<-watched
	// What it reported is in the pipe already. A program that it left behind may hold the other end for as long as it lives.
	_ = reports.SetReadDeadline(time.Now().Add(lastReports))
	<-following
	return s.explain(p.name, err)
}

// withoutSystemd removes what systemd tells a service about talking back: the API server and containerd
// would say that everything is ready as soon as they are. Only the supervisor knows.
func withoutSystemd(environment []string) []string {
	return slices.DeleteFunc(environment, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}, name)
	})
}

// terminate asks the process to stop when ctx ends, and kills it when it takes longer than grace.
func terminate(ctx context.Context, process *os.Process, grace time.Duration, stopped <-chan struct{}) {
	select {
	case <-stopped:
		return
	case <-ctx.Done():
	}
	_ = process.Signal(syscall.SIGTERM)
	select {
	case <-stopped:
	case <-time.After(grace):
		slog.Warn("process does not stop and is killed", "pid", process.Pid, "grace", grace)
		_ = process.Kill()
	}
}

// follow records what the process reports until it closes its end.
func (s *Supervisor) follow(name string, reports io.Reader) {
	lines := bufio.NewScanner(reports)
	for lines.Scan() {
		var event Event
		if json.Unmarshal(lines.Bytes(), &event) == nil {
			s.record(name, event)
		}
	}
}

// watchReady reports for a program that does not do so itself.
func (s *Supervisor) watchReady(ctx context.Context, p process) {
	if p.waitReady == nil {
		return
	}
	s.record(p.name, Event{Part: p.name, State: Starting})
	if err := p.waitReady(ctx); err == nil {
		s.record(p.name, Event{Part: p.name, State: Ready})
	}
}

// explain makes the reason of an end readable: the part that failed if one did, else how it exited and
// which parts were starting then.
func (s *Supervisor) explain(name string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var starting []string
	for _, part := range s.process(name).Parts {
		if part.State == Failed && part.Error != "" {
			return errors.New(part.Error)
		}
		if part.State == Starting {
			starting = append(starting, part.Name)
		}
	}
	reason := "it ended without an error"
	if err != nil {
		reason = "it ended with " + strings.TrimPrefix(err.Error(), "signal: ")
	}
	if len(starting) > 0 {
		reason += " while " + strings.Join(starting, ", ") + " started"
	}
	return errors.New(reason)
}
