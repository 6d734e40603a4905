// Package cgroup creates cgroups in every hierarchy on the machine, for cgroup v1 and v2. A
// cgroup's name is its path below the root cgroup, such as /slipway/platform.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const mountPoint = "/sys/fs/cgroup"

// Minimum and maximum CPU shares, in cgroup v1 units. A new cgroup has 1024 shares.
const (
	minShares = 2
	maxShares = 1 << 18
)

// Create creates a cgroup and its parents. cgroup v2 has a single hierarchy, in which each cgroup
// passes its controllers to its children. cgroup v1 has one hierarchy per controller.
func Create(group string) error {
	if group == "" || group == "/" {
		return nil
	}
	if unified() {
		return createUnified(mountPoint, group)
	}
	var problems []error
	for _, dir := range hierarchies() {
		if err := os.MkdirAll(filepath.Join(dir, group), 0o755); err != nil {
			problems = append(problems, fmt.Errorf("create cgroup: %w", err))
			continue
		}
		if filepath.Base(dir) == "cpuset" {
			problems = append(problems, inheritCpuset(dir, group))
		}
	}
	return errors.Join(problems...)
}

// Add moves a process with all its threads into a cgroup.
func Add(group string, pid int) error {
	var problems []error
	for _, dir := range hierarchies() {
		// Skip this hierarchy, because systemd uses it to track a service's processes.
		if filepath.Base(dir) == "systemd" {
			continue
		}
		problems = append(problems, write(filepath.Join(dir, group), "cgroup.procs", strconv.Itoa(pid)))
	}
	return errors.Join(problems...)
}

// SetShares sets a cgroup's share of CPU time relative to its siblings when the CPUs are busy.
func SetShares(group string, shares uint64) error {
	shares = min(max(shares, minShares), maxShares)
	if unified() {
		// Map the cgroup v1 range to the cgroup v2 range, as runc and the kubelet do.
		return write(filepath.Join(mountPoint, group), "cpu.weight", strconv.FormatUint(1+(shares-minShares)*9999/(maxShares-minShares), 10))
	}
	return write(filepath.Join(mountPoint, "cpu", group), "cpu.shares", strconv.FormatUint(shares, 10))
}

// ProtectMemory protects a cgroup's memory from reclaim. The cgroup's parents need the same
// protection. cgroup v1 does not support this protection, so the limits on the other cgroups must
// leave enough memory.
func ProtectMemory(group string, bytes uint64) error {
	if !unified() {
		return nil
	}
	return write(filepath.Join(mountPoint, group), "memory.min", strconv.FormatUint(bytes, 10))
}

// Lock reserves a cgroup for this process until the process closes the file or exits. Without the
// lock, the kubelets of two clusters on one machine would kill each other's pods, because a kubelet
// kills unknown pods below its cgroup.
func Lock(group string) (*os.File, error) {
	all := hierarchies()
	if len(all) == 0 {
		return nil, fmt.Errorf("lock cgroup %q: no hierarchy is mounted at %s", group, mountPoint)
	}
	dir, err := os.Open(filepath.Join(all[0], group))
	if err != nil {
		return nil, fmt.Errorf("lock cgroup: %w", err)
	}
	if err = dir.Chmod(0o711); err == nil { // users who cannot open the directory cannot lock it
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errors.New("another node of this machine has its pods there; " +
			"set a different slipway.cgroupRoot in the NodeConfig of each")
	}
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("lock cgroup %q: %w", group, err)
	}
	return dir, nil
}

// unified reports whether the machine uses only cgroup v2.
func unified() bool {
	var stat unix.Statfs_t
	return unix.Statfs(mountPoint, &stat) == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC
}

// hierarchies returns the mounted hierarchies that limit pods.
func hierarchies() []string {
	if unified() {
		return []string{mountPoint}
	}
	var dirs []string
	var stat unix.Statfs_t
	for _, controller := range []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "hugetlb", "blkio", "devices", "freezer", "systemd"} {
		dir := filepath.Join(mountPoint, controller)
		if unix.Statfs(dir, &stat) == nil && stat.Type == unix.CGROUP_SUPER_MAGIC {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// createUnified creates a cgroup below the mount point of the cgroup v2 hierarchy, and enables all
// of the machine's controllers in it.
func createUnified(mount, group string) error {
	path := mount
	for name := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
		if err := passDown(path); err != nil {
			return err
		}
		path = filepath.Join(path, name)
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("create cgroup: %w", err)
		}
	}
	return nil
}

// passDown enables the controllers of a v2 cgroup for its children. It skips controllers that the
// kernel rejects, such as `cpu` if the cgroup has processes with real-time priority.
func passDown(path string) error {
	controllers, err := os.ReadFile(filepath.Join(path, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read cgroup: %w", err)
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		_ = write(path, "cgroup.subtree_control", "+"+controller)
	}
	return nil
}

// inheritCpuset copies the parent's CPUs and memory nodes to each new cpuset, because both sets are
// initially empty in cgroup v1. No process can enter a cgroup with an empty set.
func inheritCpuset(hierarchy, group string) error {
	path := hierarchy
	for name := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
		parent := path
		path = filepath.Join(path, name)
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			cpus, err := os.ReadFile(filepath.Join(path, file))
			if err != nil {
				return fmt.Errorf("read cgroup: %w", err)
			}
			if strings.TrimSpace(string(cpus)) != "" {
				continue
			}
			value, err := os.ReadFile(filepath.Join(parent, file))
			if err != nil {
				return fmt.Errorf("read cgroup: %w", err)
			}
			if err := write(path, file, string(value)); err != nil {
				return err
			}
		}
	}
	return nil
}

func write(dir, file, value string) error {
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
		return fmt.Errorf("write cgroup: %w", err)
	}
	return nil
}

// Children returns the names of a cgroup's direct children. It returns nil for a missing cgroup.
func Children(group string) []string {
	entries, _ := os.ReadDir(filepath.Join(view(), group))
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// Processes returns the processes in a cgroup and its descendants. It returns nil for a missing
// cgroup.
func Processes(group string) []int {
	content, _ := os.ReadFile(filepath.Join(view(), group, "cgroup.procs"))
	var pids []int
	for field := range strings.FieldsSeq(string(content)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	for _, child := range Children(group) {
		pids = append(pids, Processes(filepath.Join(group, child))...)
	}
	return pids
}

// view returns the directory of a hierarchy that contains the processes of all pods.
func view() string {
	if unified() {
		return mountPoint
	}
	return filepath.Join(mountPoint, "pids")
}
