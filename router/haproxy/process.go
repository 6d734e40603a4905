package haproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/thread"
)

// process is a HAProxy master with its worker, which ends with its master. After a reload, the old
// process lives until its last connection ends.
type process struct {
	pid    int
	handle *os.Process
	output tail
	ended  chan struct{}
	err    error // result of the process; valid when ended is closed

	yielded bool // runs with a lower priority
	usual   int
}

// start runs HAProxy in a working directory with a configuration file. If socket is not empty, it
// must be the stats socket of a running HAProxy: the new one shares its listening sockets, and both
// accept connections until leave stops the old one. Unless outlive is set, the kernel kills the
// HAProxy master when the calling process dies. The worker gets no such signal, but ends with its
// master.
func start(program, dir, file, socket string, outlive bool) (*process, error) {
	args := []string{"-W", "-db", "-f", file}
	if socket != "" {
		args = append(args, "-x", socket)
	}
	p, command := &process{ended: make(chan struct{})}, exec.Command(program, args...)
	command.Dir, command.Stdout, command.Stderr = dir, &p.output, &p.output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !outlive {
		command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	start := make(chan error, 1)
	go func() {
		defer close(p.ended)
		// A parent death signal depends on the thread that started the program.
		p.err = thread.Run(func() error {
			err := command.Start()
			if err == nil {
				p.handle, p.pid = command.Process, command.Process.Pid
			}
			start <- err
			if err != nil {
				return err
			}
			return command.Wait()
		})
	}()
	if err := <-start; err != nil {
		return nil, fmt.Errorf("start HAProxy: %w", err)
	}
	return p, nil
}

// waitReady waits until the process responds on its socket. If the process ends first, it returns
// its output.
func (p *process) waitReady(ctx context.Context, control runtime) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-p.ended:
			return &startError{fmt.Errorf("run HAProxy: %w: %s%s", p.ending(), p.output.String(), remedy(p.output.String()))}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		if response, err := control.send("show info"); err == nil && p.isParentOf(workerOf(response)) {
			return nil
		}
	}
}

// startError returns the error for a HAProxy process that ended before it served.
type startError struct{ reason error }

func (r *startError) Error() string { return r.reason.Error() }
func (r *startError) Unwrap() error { return r.reason }

// remedy returns advice for HAProxy's output.
func remedy(output string) string {
	if strings.Contains(output, "Address already in use") {
		return "; another program uses the port, such as the router of the node: " +
			"set ROUTER_SERVICE_HTTP_PORT and ROUTER_SERVICE_HTTPS_PORT to others, " +
			"or set slipway.router.disabled in the NodeConfig"
	}
	return ""
}

// workerOf returns the process ID in the response to "show info".
func workerOf(info string) (pid string) {
	for line := range strings.Lines(info) {
		if value, is := strings.CutPrefix(line, "Pid: "); is {
			pid = strings.TrimSpace(value)
		}
	}
	return pid
}

func (p *process) isParentOf(pid string) bool {
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	return err == nil && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", p.pid))
}

func (p *process) ending() error {
	if p.err == nil {
		return errors.New("it ended without an error")
	}
	return p.err
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// niceness lowers the priority of a HAProxy process that reads its configuration while another
// one serves.
const niceness = 5

// lowerPriority lowers the priority of the process until restorePriority, if this process is able
// to restore it.
func (p *process) lowerPriority() {
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || !canRaisePriority() {
		return // the priority only affects latency
	}
	p.usual = noPriority - own
	p.yielded = unix.Setpriority(unix.PRIO_PGRP, p.pid, p.usual+niceness) == nil
}

// noPriority is the kernel's offset of priorities, which makes them positive.
const noPriority = 20

// restorePriority gives the process and its workers the priority of this process.
func (p *process) restorePriority() {
	if p.yielded {
		_ = unix.Setpriority(unix.PRIO_PGRP, p.pid, p.usual) // canRaisePriority was true
	}
}

// canRaisePriority reports whether this process can raise the priority of others.
func canRaisePriority() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	err := unix.Capget(&header, &sets[0])
	return err == nil && sets[0].Effective&(1<<unix.CAP_SYS_NICE) != 0
}

// leave makes the process close its listeners and end with its last connection.
func (p *process) leave() {
	_ = p.handle.Signal(syscall.SIGUSR1) // it might have ended
}

// kill ends the process and its workers with SIGKILL, and waits for the process.
func (p *process) kill() {
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // it leads their process group; they might have ended
	<-p.ended
}

// stop lets the process finish its requests within the grace period.
func (p *process) stop(grace time.Duration) {
	p.leave()
	select {
	case <-p.ended:
		return
	case <-time.After(grace):
	}
	_ = p.handle.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(time.Second):
		p.kill()
	}
}

// tail keeps the end of a process's output.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const keptOutput = 16 << 10

func (t *tail) Write(output []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(output)
	if extra := t.text.Len() - keptOutput; extra > 0 {
		t.text.Next(extra)
	}
	return len(output), nil
}

// String returns the end of the output.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.text.String())
}

var _ io.Writer = (*tail)(nil)
