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

// killTimeout is the maximum time that processes may take to exit after SIGTERM, and again after
// SIGKILL.
const killTimeout = 5 * time.Second

// Process is a running process.
type Process struct {
	// PID is the process ID.
	PID int
	// Name is the process's short name (comm in proc(5)).
	Name string
	// Executable is the path of the process's program, without the kernel's suffix for deleted
	// files.
	Executable string
}

// Processes first terminates the containers: all processes in cgroupRoot and its descendants. It
// then terminates the processes that run a program below dir, such as containerd and its shims.
// They receive SIGTERM, and SIGKILL after five seconds. The current process and its ancestors are
// excluded. An empty dir or cgroupRoot selects no processes.
func Processes(ctx context.Context, dir, cgroupRoot string) error {
	containers, err := InCgroup(cgroupRoot)
	errs := []error{err, End(ctx, containers)}
	processes, err := Running(dir)
	return errors.Join(append(errs, err, End(ctx, processes))...)
}

// Running returns the processes that run a program below dir, except for the current process and
// its ancestors.
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

// End sends SIGTERM to the processes. After five seconds, or when ctx is done, it sends SIGKILL to
// the remaining processes. It returns an error for each process that still exists five seconds
// later. It uses pidfds, so that it never signals a different process that reuses the PID.
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

// ending is a process that is being terminated.
type ending struct {
	Process
	descriptor int
}

// send sends the signal to all processes. It ignores processes that have already exited.
func send(list []ending, signal unix.Signal) {
	for _, e := range list {
		_ = unix.PidfdSendSignal(e.descriptor, signal, nil, 0)
	}
}

// waitEnd waits up to killTimeout until all processes have exited, and returns the remaining
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

// processes returns all processes except for the current process and its ancestors.
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

// readProcess returns the process with the given PID. It fails if the process has exited. A kernel
// thread has no Executable.
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

// ancestors returns the PIDs of the process itself and its ancestors.
func ancestors(pid int) map[int]bool {
	pids := map[int]bool{}
	for pid > 0 && !pids[pid] {
		pids[pid] = true
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			break
		}
		// The name in parentheses can contain spaces. The state and the parent's PID follow the
		// name.
		fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
		if len(fields) < 2 {
			break
		}
		pid, _ = strconv.Atoi(fields[1])
	}
	return pids
}

// usersOf returns the processes whose open files, working directory or program are below path.
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

// describe lists a mount's users and adds a remedy.
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
