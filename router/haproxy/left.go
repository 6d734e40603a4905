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

// left finds the masters that a former router of a working directory has left when it was killed: they serve what it told them last.
func left(dir string) (found []*process, err error) {
	pids, parents, err := ofDir(dir)
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		if slices.Contains(pids, parents[pid]) {
			continue // a worker
		}
		p, err := adopt(pid)
		if errors.Is(err, unix.ESRCH) {
			continue // it has just ended
		}
		if err != nil {
			return nil, fmt.Errorf("watch HAProxy %d: %w", pid, err)
		}
		found = append(found, p)
	}
	return found, nil
}

// ofDir are the processes that have the configuration of a working directory, with their parents. Processes of pods can call themselves anything: those
// of other process namespaces do not count.
func ofDir(dir string) (pids []int, parents map[int]int, err error) {
	const namespace = "ns/pid"
	own, err := os.Readlink(filepath.Join("/proc/self", namespace))
	if err != nil {
		return nil, nil, fmt.Errorf("look for HAProxy: %w", err)
	}
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, nil, err
	}
	parents = map[int]int{}
	for _, entry := range entries {
		pid, _ := strconv.Atoi(filepath.Base(entry))
		line, _ := os.ReadFile(filepath.Join(entry, "cmdline")) // the process may have ended
		args := strings.Split(string(line), "\x00")
		at := slices.Index(args, "-f")
		if at < 0 || at+1 >= len(args) || args[at+1] != configFile(dir) || filepath.Base(args[0]) != "haproxy" {
			continue
		}
		if of, _ := os.Readlink(filepath.Join(entry, namespace)); of != own {
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

// adopt watches a process that is no child of this one.
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
	p := &process{pid: pid, handle: handle, ended: make(chan struct{}), err: errors.New("it was of a former router")}
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

// EndLeft ends what a router that was killed has left of its working directory.
func EndLeft(dir string) error {
	processes, err := left(dir)
	if err != nil {
		return err
	}
	stopAll(processes, 0)
	return nil
}

// stopAll stops processes together.
func stopAll(processes []*process, grace time.Duration) {
	var group sync.WaitGroup
	for _, p := range processes {
		group.Go(func() { p.stop(grace) })
	}
	group.Wait()
}
