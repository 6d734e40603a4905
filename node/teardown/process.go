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

// killTime is how long processes have to end after SIGTERM, and again after SIGKILL.
const killTime = 5 * time.Second

// Process is a running process.
type Process struct {
	// PID is its id.
	PID int
	// Name is its short name (comm of proc(5)).
	Name string
	// Executable is the path of its program, without a mark that the file is gone meanwhile.
	Executable string
}

// Processes ends the processes that run a program below dir, such as containerd and its shims, and all processes in the cgroups
// below cgroupRoot, the containers. They are asked to end with SIGTERM, shims after the containers, and killed when they do not within five seconds. The calling process and its
// ancestors are left alone. An empty dir or cgroupRoot stands for none.
func Processes(ctx context.Context, dir, cgroupRoot string) error {
	containers, err := InCgroup(cgroupRoot)
	errs := []error{err, End(ctx, containers)}
	own, err := Running(dir)
	return errors.Join(append(errs, err, End(ctx, own))...)
}

// Running returns the processes that run a program below dir, except the calling process and its ancestors.
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

// End asks the processes to end, kills those that do not within five seconds or until ctx ends, and returns an error for each that is still
// there five seconds later.
// Every process is addressed by a file descriptor, so that another one that got its id is never hit.
func End(ctx context.Context, list []Process) error {
	var open []ending
	defer func() {
		for _, e := range open {
			unix.Close(e.descriptor)
		}
	}()
	for _, p := range list {
		descriptor, err := unix.PidfdOpen(p.PID, 0)
		if err == unix.ESRCH {
			continue
		}
		if err != nil {
			return fmt.Errorf("open process %d (%s): %w", p.PID, p.Name, err)
		}
		if now, err := readProcess(p.PID); err != nil || now != p {
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
		errs = append(errs, fmt.Errorf("process %d (%s) remains after SIGKILL: it waits for the kernel, often for an unreachable file system: mend that or restart the machine", e.PID, e.Name))
	}
	return errors.Join(errs...)
}

// ending is a process that was asked to end.
type ending struct {
	Process
	descriptor int
}

// send sends the signal to all processes. One that has ended meanwhile needs none.
func send(list []ending, signal unix.Signal) {
	for _, e := range list {
		_ = unix.PidfdSendSignal(e.descriptor, signal, nil, 0)
	}
}

// waitEnd waits until all processes have ended, at most killTime, and returns those that have not.
func waitEnd(ctx context.Context, list []ending) []ending {
	deadline := time.Now().Add(killTime)
	for {
		list = slices.DeleteFunc(slices.Clone(list), func(e ending) bool {
			ended := []unix.PollFd{{Fd: int32(e.descriptor), Events: unix.POLLIN}}
			n, err := unix.Poll(ended, 0)
			return err == nil && n == 1
		})
		if len(list) == 0 || time.Now().After(deadline) || ctx.Err() != nil {
			return list
		}
		time.Sleep(busyDelay / 5)
	}
}

// processes returns all processes except the calling one and its ancestors.
func processes() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	spared := ancestors(os.Getpid())
	var list []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || spared[pid] {
			continue
		}
		if p, err := readProcess(pid); err == nil {
			list = append(list, p)
		}
	}
	return list, nil
}

// readProcess describes the process with that id. The error is the file system's: it has probably ended. A thread of the kernel has no Executable.
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

// ancestors returns the ids of the process and of those that it descends from.
func ancestors(pid int) map[int]bool {
	found := map[int]bool{}
	for pid > 0 && !found[pid] {
		found[pid] = true
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			break
		}
		// The name in parentheses may have blanks; after it come the state and the parent.
		fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
		if len(fields) < 2 {
			break
		}
		pid, _ = strconv.Atoi(fields[1])
	}
	return found
}

// usersOf returns the processes that have a file, their directory or their program below path.
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

// describe names the users of something, with what to do about them.
func describe(users []Process) string {
	if len(users) == 0 {
		return "no process is seen to use it (the kernel does: a loop device, swap, or another mount namespace); see losetup -a and lsns -t mnt"
	}
	var names []string
	for _, p := range users {
		names = append(names, fmt.Sprintf("%d (%s)", p.PID, p.Name))
	}
	return "used by process " + strings.Join(names, ", ") + "; end it"
}
