package teardown

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// killTimeout limits the time that processes have to end after SIGTERM, and again after SIGKILL.
const killTimeout = 5 * time.Second

// Process is a running process.
type Process struct {
	// PID is its process ID.
	PID int
	// Name is its short name (comm of proc(5)).
	Name string
	// Executable is the path of its program, without the kernel's mark for a deleted file.
	Executable string
}

// Processes ends all processes in cgroupRoot and its descendants, which are the containers, and
// then the processes that run a program below dir, such as containerd and its shims. They get
// SIGTERM, and SIGKILL after five seconds. It excludes the current process and its ancestors. An
// empty dir or cgroupRoot selects no process.
func Processes(ctx context.Context, dir, cgroupRoot string) error {
	containers, err := InCgroup(cgroupRoot)
	errs := []error{err, End(ctx, containers)}
	processes, err := Running(dir)
	return errors.Join(append(errs, err, End(ctx, processes))...)
}

// Running returns the processes that run a program below dir, except the current process and its
// ancestors.
func Running(dir string) ([]Process, error) {
	if dir == "" {
		return nil, nil
	}
	dir, err := resolve(dir)
	if err != nil {
		return nil, err
	}
	all, err := processes()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p Process) bool { return !strings.HasPrefix(p.Executable, dir+"/") }), nil
}

// End sends SIGTERM to the processes, sends SIGKILL to the remaining ones after five seconds or
// when ctx ends, and returns an error for each that remains five seconds later. It uses file
// descriptors of the processes, so that it never signals another process with a reused PID.
func End(ctx context.Context, list []Process) error {
	var open []ending
	defer func() {
		for _, e := range open {
			unix.Close(e.descriptor)
		}
	}()
	for _, p := range list {
		descriptor, err := unix.PidfdOpen(p.PID, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open process %d (%s): %w", p.PID, p.Name, err)
		}
		if current, err := readProcess(p.PID); err != nil || current != p {
			unix.Close(descriptor)
			continue
		}
		open = append(open, ending{p, descriptor})
	}
	send(open, unix.SIGTERM)
	remaining := waitEnd(ctx, open)
	send(remaining, unix.SIGKILL)
	remaining = waitEnd(context.WithoutCancel(ctx), remaining)
	var errs []error
	for _, e := range remaining {
		errs = append(errs, fmt.Errorf("process %d (%s) remains after SIGKILL: it waits for the kernel, often for an unreachable file system; "+
			"restore the file system or restart the machine", e.PID, e.Name))
	}
	return errors.Join(errs...)
}

// ending is a process that is being ended.
type ending struct {
	Process
	descriptor int
}

// send sends the signal to all processes. It ignores processes that have ended.
func send(list []ending, signal unix.Signal) {
	for _, e := range list {
		_ = unix.PidfdSendSignal(e.descriptor, signal, nil, 0)
	}
}

// waitEnd waits until all processes have ended, at most killTimeout, and returns the remaining
// processes.
func waitEnd(ctx context.Context, list []ending) []ending {
	deadline := time.Now().Add(killTimeout)
	for {
		list = slices.DeleteFunc(slices.Clone(list), func(e ending) bool {
			events := []unix.PollFd{{Fd: int32(e.descriptor), Events: unix.POLLIN}}
			n, err := unix.Poll(events, 0)
			return err == nil && n == 1
		})
		if len(list) == 0 || time.Now().After(deadline) || ctx.Err() != nil {
			return list
		}
		time.Sleep(busyDelay / 5)
	}
}

// processes returns all processes except the current process and its ancestors.
func processes() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	excluded := ancestors(os.Getpid())
	var list []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || excluded[pid] {
			continue
		}
		if p, err := readProcess(pid); err == nil {
			list = append(list, p)
		}
	}
	return list, nil
}

// readProcess describes the process with a PID. It fails if the process has ended. A kernel thread
// has no Executable.
func readProcess(pid int) (Process, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return Process{}, err
	}
	executable, _ := os.Readlink(filepath.Join(dir, "exe"))
	return Process{
		PID:        pid,
		Name:       strings.TrimSpace(string(name)),
		Executable: strings.TrimSuffix(executable, " (deleted)"),
	}, nil
}

// ancestors returns the PIDs of the process and its ancestors.
func ancestors(pid int) map[int]bool {
	pids := map[int]bool{}
	for pid > 0 && !pids[pid] {
		pids[pid] = true
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			break
		}
		// The name in parentheses can have blanks. The state and the parent follow it.
		fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
		if len(fields) < 2 {
			break
		}
		pid, _ = strconv.Atoi(fields[1])
	}
	return pids
}

// usersOf returns the processes with an open file, working directory or program below path.
func usersOf(path string) []Process {
	all, err := processes()
	if err != nil {
		return nil
	}
	below := func(link string) bool {
		target, err := os.Readlink(link)
		return err == nil && (target == path || strings.HasPrefix(target, path+"/"))
	}
	return slices.DeleteFunc(all, func(p Process) bool {
		dir := filepath.Join("/proc", strconv.Itoa(p.PID))
		files, _ := filepath.Glob(filepath.Join(dir, "fd", "*"))
		links := append(files, filepath.Join(dir, "cwd"), filepath.Join(dir, "root"), filepath.Join(dir, "exe"))
		return !slices.ContainsFunc(links, below)
	})
}

// describe names the users of a mount, with the remedy.
func describe(users []Process) string {
	if len(users) == 0 {
		return "no process has it open, but the kernel uses it (a loop device, swap, or another mount namespace); " +
			"see losetup -a and lsns -t mnt"
	}
	var names []string
	for _, p := range users {
		names = append(names, fmt.Sprintf("%d (%s)", p.PID, p.Name))
	}
	return "used by process " + strings.Join(names, ", ") + "; end it"
}
