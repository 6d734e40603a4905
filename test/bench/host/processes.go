package host

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Process is a running process of a side.
type Process struct {
	PID, Parent int
	// name is its program, or for the processes of slipway which one it is.
	Name string
}

// Usage is what a process uses. Memory is in bytes.
type Usage struct {
	// Name is that of process.
	Name string
	// PSS is the proportional set size: its memory, where what it shares with others counts in
	// equal parts.
	PSS int64
	// Anonymous is the part of its memory that no file stands behind.
	Anonymous int64
	// Seconds is the processor time that it and those of its children that have ended have used.
	Seconds float64
}

// ticksPerSecond is the unit of processor times in /proc (USER_HZ), the same on every architecture
// that Kubernetes runs on.
const ticksPerSecond = 100

// Processes returns the processes in the side's namespace, and all below them: containers are in
// namespaces of their own.
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
			continue // it has ended, or is the kernel's
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

// ReadProcess reads a process from its directory in /proc. One without a command line is an error:
// it is the kernel's, or has ended and waits for its parent.
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
	stat, err := readStat(dir)
	if err != nil {
		return Process{}, err
	}
	return Process{PID: pid, Parent: stat.parent, Name: programName(line)}, nil
}

// programName returns how a process with this command line, as /proc has it, is called in the
// report.
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

// stat is the part of /proc/<pid>/stat (proc(5)) that is used here.
type stat struct {
	parent int
	// seconds of processor time, of the process and its ended children.
	seconds float64
}

func readStat(dir string) (stat, error) {
	data, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(data))
}

func parseStat(line string) (stat, error) {
	// The name in parentheses may have blanks and parentheses; the state, the third field, comes
	// after it.
	fields := strings.Fields(line[strings.LastIndex(line, ")")+1:])
	const state, parent, userTime, childrenSystemTime = 3, 4, 14, 17
	if len(fields) <= childrenSystemTime-state {
		return stat{}, fmt.Errorf("read process state %q: too short", line)
	}
	var s stat
	var err error
	if s.parent, err = strconv.Atoi(fields[parent-state]); err != nil {
		return stat{}, fmt.Errorf("read process state %q: %w", line, err)
	}
	for _, field := range fields[userTime-state : childrenSystemTime-state+1] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return stat{}, fmt.Errorf("read process state %q: %w", line, err)
		}
		s.seconds += float64(ticks) / ticksPerSecond
	}
	return s, nil
}

// Usage returns what each process of the side uses.
func (h *Host) Usage() ([]Usage, error) {
	processes, err := h.Processes()
	if err != nil {
		return nil, err
	}
	var all []Usage
	for _, p := range processes {
		u, err := p.Usage()
		if os.IsNotExist(err) {
			continue // it has ended
		}
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// Usage returns what the process uses now. The process must not have ended.
func (p Process) Usage() (Usage, error) {
	dir := filepath.Join("/proc", strconv.Itoa(p.PID))
	stat, err := readStat(dir)
	if err != nil {
		return Usage{}, err
	}
	rollup, err := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Name: p.Name, Seconds: stat.seconds}
	if u.PSS, err = rollupField(string(rollup), "Pss"); err != nil {
		return Usage{}, err
	}
	u.Anonymous, err = rollupField(string(rollup), "Anonymous")
	return u, err
}

// rollupField reads a field of /proc/<pid>/smaps_rollup, which is in kB there, as bytes.
func rollupField(rollup, name string) (int64, error) {
	for line := range strings.Lines(rollup) {
		value, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read memory field %q: %w", name, err)
		}
		return kilobytes * 1024, nil
	}
	return 0, fmt.Errorf("read memory field %q: there is none", name)
}
