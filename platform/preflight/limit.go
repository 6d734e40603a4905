package preflight

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limit is a kernel setting below /proc/sys that applies to all programs on the machine together.
type Limit struct {
	// Name is the sysctl(8) name, such as "fs.inotify.max_user_instances".
	Name string
	// Least is the minimum value that a host requires.
	Least uint64
	// Effect describes the effect of reaching the limit.
	Effect string
}

// Limits returns the limits that a host raises when it starts.
//
// A host uses about twenty inotify instances, and one more for each container whose log is
// followed. The kernel's default limit is 128 for all programs of root together. OpenShift's tuned
// profile sets the same values, including the limits for neighbors.
//
// With the default values of the other limits, a pod that reaches one of them affects all programs
// on the machine. With the raised limits, the pod reaches its own memory limit first, because the
// memory for the counted objects is charged to the pod.
func Limits() []Limit {
	const kubeletExits, neighbors = "the kubelet exits", "the host cannot reach other machines in its network segment"
	return []Limit{
		{"fs.inotify.max_user_instances", 8192, kubeletExits},
		{"fs.inotify.max_user_watches", 65536, kubeletExits},
		{"fs.file-max", math.MaxInt64, "only programs that run as root can open files"},
		{"fs.aio-max-nr", 1 << 30, "databases that use asynchronous I/O do not start"},
		{"kernel.pty.max", 1 << 20, "commands cannot get a terminal"},
		{"net.ipv4.neigh.default.gc_thresh1", 8192, neighbors},
		{"net.ipv4.neigh.default.gc_thresh2", 32768, neighbors},
		{"net.ipv4.neigh.default.gc_thresh3", 65536, neighbors},
	}
}

// Raise raises the limits that are too low. root is the directory that contains proc.
func Raise(root string, limits []Limit) error {
	for _, limit := range limits {
		value, ok, err := limit.value(root)
		if err != nil {
			return err
		}
		if !ok || value >= limit.Least {
			continue
		}
		if err := os.WriteFile(limit.path(root), []byte(strconv.FormatUint(limit.Least, 10)), 0o644); err != nil {
			return fmt.Errorf("raise %s from %d to %d: %w", limit.Name, value, limit.Least, err)
		}
	}
	return nil
}

// checkLimits reports limits that are too low and cannot be raised. In containers, /proc/sys is
// often read-only.
func checkLimits(_ context.Context, _ Requirements, machine Machine) []Problem {
	var problems []Problem
	for _, limit := range Limits() {
		value, ok, err := limit.value(machine.Root)
		if err != nil {
			problems = append(problems, Problem{Warning, "limit " + limit.Name, err.Error(), "mount -t proc proc /proc"})
			continue
		}
		var fs unix.Statfs_t
		readOnly := machine.Statfs(limit.path(machine.Root), &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
		if ok && value < limit.Least && readOnly {
			problems = append(problems, Problem{Warning, "limit " + limit.Name,
				fmt.Sprintf("is %d and cannot be raised to %d from this container; when the limit is reached, %s", value, limit.Least, limit.Effect),
				fmt.Sprintf("on the host of this container: sysctl -w %s=%d", limit.Name, limit.Least)})
		}
	}
	return problems
}

func (l Limit) path(root string) string {
	return filepath.Join(root, "proc/sys", strings.ReplaceAll(l.Name, ".", "/"))
}

// value returns the current value of the limit. ok is false if the kernel does not support the
// limit.
func (l Limit) value(root string) (value uint64, ok bool, err error) {
	content, err := os.ReadFile(l.path(root))
	if os.IsNotExist(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read limit: %w", err)
	}
	value, err = strconv.ParseUint(strings.TrimSpace(string(content)), 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("read limit %s: %w", l.Name, err)
	}
	return value, true, nil
}
