package host

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"
)

// Process is one of a side's running processes.
type Process struct {
	PID, Parent int
	// Name is the name of the program, or the name of a slipway process.
	Name string
}

// Usage contains a process's resource usage. Memory sizes are in bytes.
type Usage struct {
	// Name is the name of the Process.
	Name string
	// PSS is the proportional set size: the process's memory, with its proportional share of shared
	// memory.
	PSS int64
	// Anonymous is the memory that is not backed by a file.
	Anonymous int64
	// Seconds is the CPU time, in seconds, of the process and its exited children.
	Seconds float64
}

// ticksPerSecond is USER_HZ, the number of clock ticks per second. CPU times in /proc are in ticks.
// The value is the same on every architecture that Kubernetes supports.
const ticksPerSecond = 100

// Processes returns the processes in the side's network namespace and their descendants.
// Descendants are included because containers have their own namespaces.
func (h *Host) Processes() ([]Process, error) {
	namespace, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", h.network.FD()))
	if err != nil {
		return nil, fmt.Errorf("identify network namespace: %w", err)
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var processes, match []Process
	members := map[int]bool{}
	for _, dir := range dirs {
		p, err := ReadProcess(dir)
		if err != nil {
			continue // the process has exited, or is a kernel thread
		}
		if self, err := os.Readlink(filepath.Join(dir, "ns/net")); err != nil || self != namespace {
			processes = append(processes, p)
			continue
		}
		match, members[p.PID] = append(match, p), true
	}
	for grew := true; grew; {
		grew = false
		processes = slices.DeleteFunc(processes, func(p Process) bool {
			if !members[p.Parent] {
				return false
			}
			match, members[p.PID], grew = append(match, p), true, true
			return true
		})
	}
	return match, nil
}

// ReadProcess reads a process from its directory in /proc. It returns an error for a process
// without a command line, which is a kernel thread or a zombie.
func ReadProcess(dir string) (Process, error) {
	pid, err := strconv.Atoi(filepath.Base(dir))
	if err != nil {
		return Process{}, err
	}
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return Process{}, err
	}
	if len(line) == 0 {
		return Process{}, os.ErrNotExist
	}
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return Process{}, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return Process{}, err
	}
	return Process{PID: pid, Parent: stat.PPID, Name: programName(line)}, nil
}

// programName returns the name under which the report lists a process. line is the process's
// command line in procfs format.
func programName(line []byte) string {
	var args []string
	for arg := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte{0}), []byte{0}) {
		args = append(args, string(arg))
	}
	name := filepath.Base(args[0])
	if name == "slipway" && len(args) > 1 {
		return "slipway " + args[1]
	}
	return name
}

// Usage returns the resource usage of each process that Processes returns.
func (h *Host) Usage() ([]Usage, error) {
	processes, err := h.Processes()
	if err != nil {
		return nil, err
	}
	var all []Usage
	for _, p := range processes {
		u, err := p.Usage()
		if os.IsNotExist(err) {
			continue // The process has ended.
		}
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// Usage returns the current usage of the process. The process must be running.
func (p Process) Usage() (Usage, error) {
	proc, err := procfs.NewProc(p.PID)
	if err != nil {
		return Usage{}, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return Usage{}, err
	}
	memory, err := proc.ProcSMapsRollup()
	if err != nil {
		return Usage{}, err
	}
	children := float64(stat.CUTime+stat.CSTime) / ticksPerSecond
	return Usage{Name: p.Name, PSS: int64(memory.Pss), Anonymous: int64(memory.Anonymous), Seconds: stat.CPUTime() + children}, nil
}
