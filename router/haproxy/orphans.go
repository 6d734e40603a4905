package haproxy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// orphans returns the HAProxy masters that a killed router left running in the same working
// directory. They still serve that router's last configuration.
func orphans(dir string) (masters []*process, err error) {
	pids, parents, err := ofDir(dir)
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		if slices.Contains(pids, parents[pid]) {
			continue // the process is a worker
		}
		p, err := adopt(pid)
		if errors.Is(err, unix.ESRCH) {
			continue // the process has just ended
		}
		if err != nil {
			return nil, fmt.Errorf("watch HAProxy %d: %w", pid, err)
		}
		masters = append(masters, p)
	}
	return masters, nil
}

// ofDir returns the processes that use the configuration in a working directory, and their parents.
// It ignores processes in other PID namespaces, because processes in pods can have any name.
func ofDir(dir string) (pids []int, parents map[int]int, err error) {
	const namespace = "ns/pid"
	self, err := os.Readlink(filepath.Join("/proc/self", namespace))
	if err != nil {
		return nil, nil, fmt.Errorf("find HAProxy processes: %w", err)
	}
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, nil, err
	}
	parents = map[int]int{}
	for _, entry := range entries {
		pid, _ := strconv.Atoi(filepath.Base(entry))
		line, _ := os.ReadFile(filepath.Join(entry, "cmdline")) // the process might have ended
		args := strings.Split(string(line), "\x00")
		at := slices.Index(args, "-f")
		if at < 0 || at+1 >= len(args) || args[at+1] != configFile(dir) || filepath.Base(args[0]) != "haproxy" {
			continue
		}
		if of, _ := os.Readlink(filepath.Join(entry, namespace)); of != self {
			continue
		}
		pids = append(pids, pid)
		status, _ := os.ReadFile(filepath.Join(entry, "status"))
		_, rest, _ := strings.Cut(string(status), "\nPPid:\t")
		parent, _, _ := strings.Cut(rest, "\n")
		parents[pid], _ = strconv.Atoi(parent)
	}
	return pids, parents, nil
}

// adopt watches a process that is not a child of the current process.
func adopt(pid int) (*process, error) {
	file, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	handle, err := os.FindProcess(pid)
	if err != nil {
		_ = unix.Close(file)
		return nil, err
	}
	p := &process{
		pid: pid, handle: handle, ended: make(chan struct{}),
		err: errors.New("an earlier router started it"),
	}
	go func() {
		defer close(p.ended)
		defer unix.Close(file)
		for {
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(file), Events: unix.POLLIN}}, -1); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return p, nil
}

// EndOrphans stops HAProxy processes that a killed router left running in a working directory.
func EndOrphans(dir string) error {
	processes, err := orphans(dir)
	if err != nil {
		return err
	}
	stopAll(processes, 0)
	return nil
}

// stopAll stops processes concurrently and waits until they have exited.
func stopAll(processes []*process, grace time.Duration) {
	var group sync.WaitGroup
	for _, p := range processes {
		group.Go(func() { p.stop(grace) })
	}
	group.Wait()
}
