package haproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
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

// process is one HAProxy: a master, and below it a worker, which ends with its master. After a reload the former one lives on until its last
// connection ends.
type process struct {
	pid    int
	handle *os.Process
	output tail
	ended  chan struct{}
	err    error // what it ended with; valid when ended is closed

	yielded bool // it has another priority than the usual one
	usual   int
}

// start runs HAProxy in a working directory on a configuration file. It shares the listening sockets of the one that answers on a socket, if there is one: both take connections until
// the former is told to leave. The kernel ends the master with this process unless it is to outlive it; the worker, which changes its user, would not be ended so.
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
	began := make(chan error, 1)
	go func() {
		defer close(p.ended)
		// The kernel ends the program with the thread that started it.
		p.err = thread.Run(func() error {
			err := command.Start()
			if err == nil {
				p.handle, p.pid = command.Process, command.Process.Pid
			}
			began <- err
			if err != nil {
				return err
			}
			return command.Wait()
		})
	}()
	if err := <-began; err != nil {
		return nil, fmt.Errorf("start HAProxy: %w", err)
	}
	return p, nil
}

// waitReady waits until the process answers on its socket, or returns what it says when it ends before.
func (p *process) waitReady(ctx context.Context, control runtime) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-p.ended:
			return &refusal{fmt.Errorf("run HAProxy: %w: %s%s", p.ending(), p.output.String(), remedy(p.output.String()))}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
		}
		if answer, err := control.ask("show info"); err == nil && p.isParentOf(workerOf(answer)) {
			return nil
		}
	}
}

// refusal is the end of a HAProxy that has not begun to serve.
type refusal struct{ reason error }

func (r *refusal) Error() string { return r.reason.Error() }
func (r *refusal) Unwrap() error { return r.reason }

// remedy is what to do about what HAProxy says.
func remedy(output string) string {
	if strings.Contains(output, "Address already in use") {
		return "; another program has the port, such as the router of the node: choose others with ROUTER_SERVICE_HTTP_PORT and ROUTER_SERVICE_HTTPS_PORT, " +
			"or set slipway.router.disabled in the NodeConfig"
	}
	return ""
}

// workerOf is the process that answered "show info".
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
		return errors.New("it ended by itself")
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

// modest is by how much a HAProxy that reads its configuration gives way to the one that answers meanwhile.
const modest = 5

// yield has the process give way to others until it is told to hurry, if it can be told that.
func (p *process) yield() {
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || !mayHurry() {
		return // it is as good without
	}
	p.usual = noPriority - own
	p.yielded = unix.Setpriority(unix.PRIO_PGRP, p.pid, p.usual+modest) == nil
}

// noPriority is what the kernel takes a priority from, so that it is never negative.
const noPriority = 20

// hurry has the process, with its workers, give way as little as this one.
func (p *process) hurry() {
	if p.yielded {
		_ = unix.Setpriority(unix.PRIO_PGRP, p.pid, p.usual) // which it may
	}
}

// mayHurry says whether this process may give others a higher priority.
func mayHurry() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	err := unix.Capget(&header, &sets[0])
	return err == nil && sets[0].Effective&(1<<unix.CAP_SYS_NICE) != 0
}

// leave has the process take no more connections, and end with those that it has.
func (p *process) leave() {
	_ = p.handle.Signal(syscall.SIGUSR1) // it may have ended
}

// kill ends the process with its workers, even such as do not react, and waits for it.
func (p *process) kill() {
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // it leads their group; they may have ended
	<-p.ended
}

// stop lets the process finish its requests, for as long as grace says.
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

// tail keeps the last of what a process says.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const keptOutput = 16 << 10

func (t *tail) Write(said []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(said)
	if extra := t.text.Len() - keptOutput; extra > 0 {
		t.text.Next(extra)
	}
	return len(said), nil
}

// String is what was said last.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.text.String())
}

var _ io.Writer = (*tail)(nil)

// writeFiles brings the files below a directory to what a configuration needs. Only what differs from before is written.
func writeFiles(dir string, before, files map[string][]byte) error {
	for name, content := range files {
		if was, same := before[name]; same && bytes.Equal(was, content) {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("write file: %w", err)
		}
	}
	return nil
}

// removeFiles removes what the configuration before needed and the present one does not.
func removeFiles(dir string, before, files map[string][]byte) {
	for name := range before {
		if _, needed := files[name]; needed {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			slog.Warn("a file of a former route stays", "error", err)
		}
	}
}

// tidy brings the files of routes to what is served, between reloads, so that no key lies about that is no longer used.
func (r *running) tidy(dir string) error {
	config := r.served.config
	if config.whole != "" || sameMap(r.tidied, config.Files) {
		return nil
	}
	if err := writeFiles(dir, r.files, config.Files); err != nil {
		return err
	}
	maps.Copy(r.files, config.Files)
	for name := range r.files {
		_, needed := config.Files[name]
		if needed || !strings.HasPrefix(name, certificatesDir) && !strings.HasPrefix(name, authoritiesDir) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove file of a former route: %w", err)
		}
		delete(r.files, name)
	}
	r.tidied = config.Files
	return nil
}
