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

// Process is a program that runs on the machine.
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

// Processes returns the processes of the cluster: programs with the data directory in their command
// line, and containers.
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
		// An ended process has neither file. A zombie has no arguments.
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

// commandLine reads the arguments of a process. A process whose main thread has ended may have
// other threads, which keep its files and ports until they end.
func commandLine(entry string) []byte {
	threads, _ := filepath.Glob(filepath.Join(entry, "task", "*", "cmdline"))
	for _, file := range append([]string{filepath.Join(entry, "cmdline")}, threads...) {
		if line, _ := os.ReadFile(file); len(line) > 0 {
			return line
		}
	}
	return nil
}

// Kill sends SIGKILL to one process of the cluster and waits for its end. The process is "slipway",
// the supervisor, or a process in `slipway status`.
func (c *Cluster) Kill(name string) {
	c.t.Helper()
	c.kill(Process{PID: c.pid(name)})
}

// Signal sends a signal to one process of the cluster: "slipway", the supervisor, or a process in
// `slipway status`.
func (c *Cluster) Signal(name string, signal syscall.Signal) {
	c.t.Helper()
	if err := syscall.Kill(c.pid(name), signal); err != nil {
		c.t.Fatalf("send %s to %s: %v", signal, name, err)
	}
}

// KillEverything sends SIGKILL to all processes, including containers, as if the machine lost
// power.
func (c *Cluster) KillEverything() {
	c.t.Helper()
	// It kills the supervisor first, so that the supervisor restarts no process.
	c.Kill("slipway")
	c.WaitFor("end of all processes", func(context.Context) error {
		processes, err := c.Processes()
		if err != nil || len(processes) == 0 {
			return err
		}
		for _, process := range processes {
			_ = syscall.Kill(process.PID, syscall.SIGKILL) // the process might have ended
		}
		return fmt.Errorf("processes remain: %v", processes)
	})
}

func (c *Cluster) pid(name string) int {
	c.t.Helper()
	if name != "slipway" {
		for _, process := range c.Status().Processes {
			if process.Name == name && process.PID > 0 {
				return process.PID
			}
		}
		c.t.Fatalf("no process %q runs", name)
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
			return nil // a zombie
		}
		return fmt.Errorf("the process is running")
	})
}
