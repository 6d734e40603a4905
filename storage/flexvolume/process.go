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
	// killGrace is how long a driver has between SIGTERM and SIGKILL.
	killGrace = 2 * time.Second
	// reapGrace is how long a killed driver may take to be gone. One that waits in the kernel for a dead disk takes longer.
	reapGrace = 2 * time.Second
	// lateGrace is how long an answer may come after the driver's end, from a child of its that copies its output.
	lateGrace = 2 * time.Second
	// A driver whose output has grown over maxFlood bytes, which is looked at every floodInterval, is killed before it fills the memory.
	maxFlood      = 16 << 20
	floodInterval = 50 * time.Millisecond
)

// errStart is the cause of a run whose executable could not be started.
var errStart = errors.New("start")

// errFlood is the error of a driver that was killed because it did not stop printing.
var errFlood = errors.New("output without end")

// process is one run of a driver's executable.
//
// Its output goes to files in memory and not to pipes: a daemon that the driver leaves behind with its output open
// neither keeps the call waiting nor is killed by SIGPIPE when this process ends. After the call the files are sealed, so that such a daemon
// cannot fill the memory.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *os.File
	done           chan struct{} // closed when the driver's own process is gone
	exit           error         // valid after done
	gone           chan struct{} // closed after done and, where the process group was killed, when nothing of it is left
}

// start runs path with args in a process group of its own. The caller must call finish.
func start(path string, args []string) (*process, error) {
	p := &process{done: make(chan struct{}), gone: make(chan struct{})}
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
		p.cmd.Dir = "/"
		p.cmd.Env = environment()
		p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		err = p.cmd.Start()
		// An executable that was written a moment ago is busy while another fork of this process still has it open.
		if !errors.Is(err, syscall.ETXTBSY) || attempt == 5 {
			break
		}
		time.Sleep(10 * time.Millisecond << attempt)
	}
	if err != nil {
		p.stdout.Close()
		p.stderr.Close()
		return nil, fmt.Errorf("%w %s: %w", errStart, path, reason(err))
	}
	// The driver's end is waited for beyond any deadline: whoever asks next for the same volume must know that it is over.
	go func() {
		p.exit = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// wait returns when the driver has ended, or when its process group was killed because ctx has ended or the output has no end. In the
// latter cases there is an error, that of ctx or errFlood, and a process of the group may still exist if it waits in the kernel. It is called once.
func (p *process) wait(ctx context.Context) error {
	look := time.NewTicker(floodInterval)
	defer look.Stop()
	for {
		select {
		case <-p.done:
			close(p.gone)
			return nil
		case <-ctx.Done():
			p.kill()
			return context.Cause(ctx)
		case <-look.C:
			if size(p.stdout)+size(p.stderr) > maxFlood {
				p.kill()
				return errFlood
			}
		}
	}
}

// kill ends the process group: first with SIGTERM, then with SIGKILL.
func (p *process) kill() {
	group := -p.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(killGrace):
	}
	// Also after the driver itself has ended: its children may have ignored the first signal.
	_ = syscall.Kill(group, syscall.SIGKILL)
	go p.awaitGroup()
	select {
	case <-p.gone:
	case <-time.After(reapGrace):
	}
}

// awaitGroup closes gone when nothing is left of the killed process group. A child that is in a system call, such as mount, ends only
// after that, which may be later than the end of the driver.
func (p *process) awaitGroup() {
	<-p.done
	for pause := time.Millisecond; groupLives(p.cmd.Process.Pid); pause = min(2*pause, time.Second) {
		time.Sleep(pause)
	}
	close(p.gone)
}

// groupLives says whether any process of a group is still at work; zombies that nobody waits for do no harm.
func groupLives(group int) bool {
	if errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		return false
	}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// 42 (name with anything in it) S <parent> <group> ...
		fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X" {
			return true
		}
	}
	return false
}

// output is what the driver printed until now. Where that holds no answer although the driver has ended, a child of the
// driver gets a moment to print it (bash's `exec > >(tee log)` is such a driver).
func (p *process) output(ended bool) output {
	read := func() output {
		return output{stdout: content(p.stdout), stderr: content(p.stderr)}
	}
	out := read()
	if !ended {
		return out
	}
	group := -p.cmd.Process.Pid
	for deadline := time.Now().Add(lateGrace); time.Now().Before(deadline); out = read() {
		_, problem := parse(out, func(text string) string { return text })
		if problem == nil || problem.kind == KindTooLong || syscall.Kill(group, 0) != nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	out.exit = p.exit
	return out
}

// finish gives back what the process held.
func (p *process) finish() {
	for _, file := range []*os.File{p.stdout, p.stderr} {
		_, _ = unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
		file.Close()
	}
}

// memoryFile makes an empty file in memory to which every writer appends.
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

// size is how much has been written to a file in memory, in bytes.
func size(file *os.File) int64 {
	info, err := file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// content is what has been written to a file in memory, cut one byte after maxOutput.
func content(file *os.File) []byte {
	read, _ := io.ReadAll(io.NewSectionReader(file, 0, maxOutput+1))
	return read
}

// environment is this process's own, without what belongs to it alone, as it was when the first driver was called.
var environment = sync.OnceValue(func() []string {
	var kept []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch name {
		case "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES":
		default:
			kept = append(kept, variable)
		}
	}
	if os.Getenv("PATH") == "" {
		kept = append(kept, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	return kept
})

// reason says what the errors of execve mean for a driver.
func reason(err error) error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: a script must begin with a line such as #!/bin/sh", syscall.ENOEXEC)
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%w: the file, or the interpreter in its first line, does not exist", syscall.ENOENT)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("%w: options and secret are over the kernel's limit", syscall.E2BIG)
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
