package flexvolume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// termTimeout is the time between SIGTERM and SIGKILL.
	termTimeout = 2 * time.Second
	// killTimeout is the maximum time to wait for a killed driver to exit. A process in a system
	// call on a dead disk takes longer.
	killTimeout = 2 * time.Second
	// lateOutputTimeout is the maximum time to wait, after the driver has exited without a
	// response, for a child process to print the response.
	lateOutputTimeout = 2 * time.Second
	// A driver that has written more than outputKillLimit bytes is killed before it exhausts the
	// memory. The size of the output is checked every outputCheckInterval.
	outputKillLimit     = 16 << 20
	outputCheckInterval = 50 * time.Millisecond
)

// errStart is the error for an executable that could not be started.
var errStart = errors.New("start")

// errOutputLimit is the error for a driver that was killed because it wrote too much output.
var errOutputLimit = errors.New("output exceeds limit")

// process is one execution of a driver.
//
// The driver's output is written to memory files, not pipes. As a result, a daemon that the driver
// leaves behind with open output files neither blocks the call nor receives SIGPIPE when this
// process exits. The files are sealed after the call, so that such a daemon cannot exhaust the
// memory.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *os.File
	done           chan struct{} // closed when the driver's own process has ended
	exit           error         // valid when done is closed
	// groupDone is closed after done and, if the process group was killed, once the whole group has
	// exited.
	groupDone chan struct{}
}

// workingDir is the directory in which drivers run.
const workingDir = "/"

// startProcess runs path with args in dir, in a new process group. The caller must call close.
func startProcess(path string, args []string, dir string) (*process, error) {
	p := &process{done: make(chan struct{}), groupDone: make(chan struct{})}
	var err error
	if p.stdout, err = memoryFile("stdout"); err != nil {
		return nil, err
	}
	if p.stderr, err = memoryFile("stderr"); err != nil {
		p.stdout.Close()
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		p.cmd = exec.Command(path, args...)
		p.cmd.Dir = dir
		p.cmd.Env = environment()
		p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		err = p.cmd.Start()
		// ETXTBSY: a newly written executable is busy while a concurrent fork of this process still
		// has it open.
		if !errors.Is(err, syscall.ETXTBSY) || attempt == 5 {
			break
		}
		time.Sleep(10 * time.Millisecond << attempt)
	}
	if err != nil {
		p.stdout.Close()
		p.stderr.Close()
		return nil, fmt.Errorf("%w %s: %w", errStart, path, execError(err))
	}
	// Wait for the driver beyond any deadline, because the volume's next call must not start before
	// the driver has exited.
	go func() {
		p.exit = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// wait waits until the driver has exited. If ctx is done or the output is too large, wait kills the
// process group and returns an error: the error of ctx, or errOutputLimit. After an error, a
// process in the group might still exist if it is in a system call. wait must be called only once.
func (p *process) wait(ctx context.Context) error {
	ticker := time.NewTicker(outputCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			close(p.groupDone)
			return nil
		case <-ctx.Done():
			p.kill()
			return context.Cause(ctx)
		case <-ticker.C:
			if size(p.stdout)+size(p.stderr) > outputKillLimit {
				p.kill()
				return errOutputLimit
			}
		}
	}
}

// kill sends SIGTERM, then SIGKILL, to the process group.
func (p *process) kill() {
	group := -p.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(termTimeout):
	}
	// The driver's children can outlive the driver, and might have ignored SIGTERM.
	_ = syscall.Kill(group, syscall.SIGKILL)
	go p.waitForGroup()
	select {
	case <-p.groupDone:
	case <-time.After(killTimeout):
	}
}

// waitForGroup closes groupDone when no process of the killed group remains. A process in a system
// call, such as mount, exits only after the system call, which might be later than the driver's
// exit.
func (p *process) waitForGroup() {
	<-p.done
	for pause := time.Millisecond; groupAlive(p.cmd.Process.Pid); pause = min(2*pause, time.Second) {
		time.Sleep(pause)
	}
	close(p.groupDone)
}

// groupAlive reports whether any process in the group is running. It ignores zombies, because they
// are harmless.
func groupAlive(group int) bool {
	if errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		return false
	}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// Format: 42 (any program name) S <parent> <group> ...
		fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X" {
			return true
		}
	}
	return false
}

// output returns the driver's output. If the driver has exited without a response, output waits up
// to lateOutputTimeout for a child process to print the response, as in bash's `exec > >(tee log)`.
func (p *process) output(exited bool) output {
	read := func() output {
		return output{stdout: content(p.stdout), stderr: content(p.stderr)}
	}
	out := read()
	if !exited {
		return out
	}
	group := -p.cmd.Process.Pid
	for deadline := time.Now().Add(lateOutputTimeout); time.Now().Before(deadline); out = read() {
		_, err := parse(out, func(text string) string { return text })
		if err == nil || err.kind == KindTooLong || syscall.Kill(group, 0) != nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	out.exit = p.exit
	return out
}

// close seals and closes the output files.
func (p *process) close() {
	for _, file := range []*os.File{p.stdout, p.stderr} {
		_, _ = unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
		file.Close()
	}
}

// memoryFile creates an empty memory file in append mode.
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate("flexvolume-"+name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("create file in memory for driver's output: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_APPEND); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("set up file in memory for driver's output: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// size returns the size of a memory file, in bytes.
func size(file *os.File) int64 {
	info, err := file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// content returns at most maxOutput+1 bytes of a memory file.
func content(file *os.File) []byte {
	data, _ := io.ReadAll(io.NewSectionReader(file, 0, maxOutput+1))
	return data
}

// environment returns this process's environment as of the first call, without the environment
// variables that are specific to this process.
var environment = sync.OnceValue(func() []string {
	var remaining []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch name {
		case "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES":
		default:
			remaining = append(remaining, variable)
		}
	}
	if os.Getenv("PATH") == "" {
		remaining = append(remaining, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	return remaining
})

// execError returns an error that explains an execve error.
func execError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: a script must begin with a line such as #!/bin/sh", syscall.ENOEXEC)
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%w: the file, or the interpreter in its first line, does not exist", syscall.ENOENT)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("%w: the options and the secret exceed the kernel's limit; make them smaller", syscall.E2BIG)
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
