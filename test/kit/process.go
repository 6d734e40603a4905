package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Process is a program that is running on the machine.
type Process struct {
	PID  int
	Args []string
}

// String returns the process ID and the beginning of the command line.
func (p Process) String() string {
	line := strings.Join(p.Args, " ")
	return fmt.Sprintf("%d %s", p.PID, line[:min(len(line), 120)])
}

// Program returns the file name of the program.
func (p Process) Program() string { return filepath.Base(p.Args[0]) }

// Processes returns the cluster's processes: programs whose command line contains the data
// directory, and processes in containers.
func (c *Cluster) Processes() ([]Process, error) {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var processes []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err != nil || pid == os.Getpid() {
			continue
		}
		// The files do not exist if the process has exited. A zombie has no arguments.
		line := commandLine(entry)
		groups, _ := os.ReadFile(filepath.Join(entry, "cgroup"))
		if len(line) == 0 {
			continue
		}
		if strings.Contains(string(line), c.DataDir) || strings.Contains(string(groups), c.CgroupRoot+"/") {
			args := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
			processes = append(processes, Process{PID: pid, Args: args})
		}
	}
	return processes, nil
}

// commandLine returns a process's arguments. It also tries the process's threads, because a process
// whose main thread has exited keeps its files and ports until the other threads exit.
func commandLine(entry string) []byte {
	threads, _ := filepath.Glob(filepath.Join(entry, "task", "*", "cmdline"))
	for _, file := range append([]string{filepath.Join(entry, "cmdline")}, threads...) {
		if line, _ := os.ReadFile(file); len(line) > 0 {
			return line
		}
	}
	return nil
}

// Kill sends SIGKILL to one of the cluster's processes and waits until the process has exited. name
// is "slipway" for the supervisor, or the name of a process that `slipway status` lists.
func (c *Cluster) Kill(name string) {
	c.t.Helper()
	c.kill(Process{PID: c.pid(name)})
}

// Signal sends a signal to one of the cluster's processes. name is "slipway" for the supervisor, or
// the name of a process that `slipway status` lists.
func (c *Cluster) Signal(name string, signal syscall.Signal) {
	c.t.Helper()
	if err := syscall.Kill(c.pid(name), signal); err != nil {
		c.t.Fatalf("send %s to %s: %v", signal, name, err)
	}
}

// KillEverything sends SIGKILL to all of the host's processes, including containers, to simulate a
// loss of power.
func (c *Cluster) KillEverything() {
	c.t.Helper()
	// Kill the supervisor first, so that it does not restart the other processes.
	c.Kill("slipway")
	c.WaitFor("end of all processes", func(context.Context) error {
		processes, err := c.Processes()
		if err != nil || len(processes) == 0 {
			return err
		}
		for _, process := range processes {
			_ = syscall.Kill(process.PID, syscall.SIGKILL) // the process might have exited
		}
		return fmt.Errorf("processes remain: %v", processes)
	})
}

// WaitRestart waits until the process's PID differs from before and all components on the host are
// ready.
func (c *Cluster) WaitRestart(name string, before int) {
	c.t.Helper()
	c.WaitFor("restart of "+name, func(context.Context) error {
		if status := c.Status(); !status.Ready || status.PID(name) == before {
			return fmt.Errorf("the status is %+v", status.Processes)
		}
		return nil
	})
}

// WaitReady waits until all components on the host are ready.
func (c *Cluster) WaitReady() {
	c.t.Helper()
	c.WaitFor("ready components", func(context.Context) error {
		if status := c.Status(); !status.Ready {
			return fmt.Errorf("the status is %+v", status.Processes)
		}
		return nil
	})
}

func (c *Cluster) pid(name string) int {
	c.t.Helper()
	if name != "slipway" {
		pid := c.Status().PID(name)
		if pid == 0 {
			c.t.Fatalf("no process %q runs", name)
		}
		return pid
	}
	processes, err := c.Processes()
	if err != nil {
		c.t.Fatal(err)
	}
	i := slices.IndexFunc(processes, func(p Process) bool {
		return p.Program() == "slipway-supervisor"
	})
	if i < 0 {
		c.t.Fatalf("no supervisor among %v", processes)
	}
	return processes[i].PID
}

func (c *Cluster) kill(process Process) {
	c.t.Helper()
	if err := syscall.Kill(process.PID, syscall.SIGKILL); err != nil {
		c.t.Fatalf("kill process %d: %v", process.PID, err)
	}
	c.WaitFor(fmt.Sprintf("end of process %d", process.PID), func(context.Context) error {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process.PID))
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if _, after, ok := strings.Cut(string(state), ") "); ok && strings.HasPrefix(after, "Z") {
			return nil // the process is a zombie
		}
		return fmt.Errorf("the process is running")
	})
}
