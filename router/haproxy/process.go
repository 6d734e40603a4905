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

// process is an HAProxy master with its worker. The worker exits when its master exits. After a
// reload, the old process runs until its last connection ends.
type process struct {
	pid    int
	handle *os.Process
	output tail
	ended  chan struct{}
	err    error // result of the process; valid after ended is closed

	yielded bool // true if the process runs with a lower priority
	usual   int
}

// start runs HAProxy in a working directory with a configuration file. If socket is not empty, it
// must be the stats socket of a running HAProxy process. The new process then shares the listening
// sockets of the running process, and both processes accept connections until leave stops the old
// process. Unless outlive is set, the kernel kills the HAProxy master when the calling process
// exits. The worker receives no such signal, but exits when its master exits.
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
		// Use thread.Run, because the kernel sends a parent death signal when the thread that
		// started the program exits.
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

// waitReady waits until the process responds on its socket. If the process exits before it
// responds, waitReady returns the process's output as an error.
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

// startError is the error for an HAProxy process that exited before it was ready.
type startError struct{ reason error }

func (r *startError) Error() string { return r.reason.Error() }
func (r *startError) Unwrap() error { return r.reason }

// remedy returns advice that is based on HAProxy's output.
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

// niceness is the nice value of an HAProxy process that reads its configuration while another
// process serves requests.
const niceness = 5

// lowerPriority lowers the priority of the process until restorePriority is called. It is a no-op
// if this process cannot restore the priority.
func (p *process) lowerPriority() {
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || !canRaisePriority() {
		return // ignore the error: the priority only affects latency
	}
	p.usual = noPriority - own
	p.yielded = unix.Setpriority(unix.PRIO_PGRP, p.pid, p.usual+niceness) == nil
}

// noPriority is the offset that the kernel uses to make priorities positive.
const noPriority = 20

// restorePriority sets the priority of the process and its workers to the priority of the calling
// process.
func (p *process) restorePriority() {
	if p.yielded {
		_ = unix.Setpriority(unix.PRIO_PGRP, p.pid, p.usual) // lowerPriority checked the permission
	}
}

// canRaisePriority reports whether the calling process can raise the priority of other processes.
func canRaisePriority() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	err := unix.Capget(&header, &sets[0])
	return err == nil && sets[0].Effective&(1<<unix.CAP_SYS_NICE) != 0
}

// leave makes the process close its listening sockets and exit when its last connection ends.
func (p *process) leave() {
	_ = p.handle.Signal(syscall.SIGUSR1) // the process might have ended
}

// kill kills the process and its workers with SIGKILL, and waits until the process has exited.
func (p *process) kill() {
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // p leads the process group, which might be empty
	<-p.ended
}

// stop lets the process finish its requests within the grace period, and then kills it.
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

// tail keeps the last part of a process's output.
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

// String returns the last part of the output.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.text.String())
}

var _ io.Writer = (*tail)(nil)
