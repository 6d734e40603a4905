// Package cgroup creates control groups in every hierarchy that the machine has, of version 1 and
// of version 2. A group is named by its path below the root group, such as /slipway/platform.
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

// Shares of processor time, in the unit of version 1, in which a new group has 1024.
const (
	minShares = 2
	maxShares = 1 << 18
)

// Create makes a group and those above it. Version 2 has one hierarchy, in which each group passes
// the controllers down to those below it; version 1 has one directory for each controller.
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
			problems = append(problems, fmt.Errorf("create control group: %w", err))
			continue
		}
		if filepath.Base(dir) == "cpuset" {
			problems = append(problems, inheritCpuset(dir, group))
		}
	}
	return errors.Join(problems...)
}

// Add moves a process with its threads into a group.
func Add(group string, pid int) error {
	var problems []error
	for _, dir := range hierarchies() {
		if filepath.Base(dir) == "systemd" { // it limits nothing, and systemd finds the processes of a service with it
			continue
		}
		problems = append(problems, write(filepath.Join(dir, group), "cgroup.procs", strconv.Itoa(pid)))
	}
	return errors.Join(problems...)
}

// SetShares says how much processor time a group gets beside others of the same parent when there
// is too little for all.
func SetShares(group string, shares uint64) error {
	shares = min(max(shares, minShares), maxShares)
	if unified() {
		// The range of version 1 onto that of version 2, as runc and kubelet do.
		return write(filepath.Join(mountPoint, group), "cpu.weight", strconv.FormatUint(1+(shares-minShares)*9999/(maxShares-minShares), 10))
	}
	return write(filepath.Join(mountPoint, "cpu", group), "cpu.shares", strconv.FormatUint(shares, 10))
}

// ProtectMemory keeps so much memory of a group from being reclaimed for others. The groups above
// it must have the same protection. Version 1 can't do it and is left as it is: there the limit of
// the other groups has to leave the memory.
func ProtectMemory(group string, bytes uint64) error {
	if !unified() {
		return nil
	}
	return write(filepath.Join(mountPoint, group), "memory.min", strconv.FormatUint(bytes, 10))
}

// Lock keeps a group for this process, until it closes the file or ends: kubelet ends pods below
// its group that it does not know, those of another cluster on this machine too.
func Lock(group string) (*os.File, error) {
	all := hierarchies()
	if len(all) == 0 {
		return nil, fmt.Errorf("lock control group %q: no hierarchy is mounted at %s", group, mountPoint)
	}
	dir, err := os.Open(filepath.Join(all[0], group))
	if err != nil {
		return nil, fmt.Errorf("lock control group: %w", err)
	}
	if err = dir.Chmod(0o711); err == nil { // a user who cannot open it cannot lock it
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errors.New("another node of this machine has its pods there; give each a slipway.cgroupRoot of its own in its NodeConfig")
	}
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("lock control group %q: %w", group, err)
	}
	return dir, nil
}

// unified reports whether the machine has version 2 alone.
func unified() bool {
	var stat unix.Statfs_t
	return unix.Statfs(mountPoint, &stat) == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC
}

// hierarchies lists the mounted hierarchies that limit pods.
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

// createUnified makes a group of version 2 below the hierarchy's mount point, and lets it have
// every controller that the machine has.
func createUnified(mount, group string) error {
	path := mount
	for name := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
		if err := passDown(path); err != nil {
			return err
		}
		path = filepath.Join(path, name)
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("create control group: %w", err)
		}
	}
	return nil
}

// passDown gives the groups below a group of version 2 the controllers that the group has. One that
// the kernel does not pass on, such as `cpu` beside processes with real-time priority, is left out.
func passDown(path string) error {
	controllers, err := os.ReadFile(filepath.Join(path, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read control group: %w", err)
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		_ = write(path, "cgroup.subtree_control", "+"+controller)
	}
	return nil
}

// inheritCpuset copies the processors and memory nodes of the parent into each new cpuset: in
// version 1 they begin empty, and no process can enter such a group.
func inheritCpuset(hierarchy, group string) error {
	path := hierarchy
	for name := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
		parent := path
		path = filepath.Join(path, name)
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			own, err := os.ReadFile(filepath.Join(path, file))
			if err != nil {
				return fmt.Errorf("read control group: %w", err)
			}
			if strings.TrimSpace(string(own)) != "" {
				continue
			}
			value, err := os.ReadFile(filepath.Join(parent, file))
			if err != nil {
				return fmt.Errorf("read control group: %w", err)
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
		return fmt.Errorf("write control group: %w", err)
	}
	return nil
}

// Children returns the names of the groups directly below a group; none where it does not exist.
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

// Processes returns the processes in a group and below it; none where it does not exist.
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

// view is a hierarchy in which every process of a pod is.
func view() string {
	if unified() {
		return mountPoint
	}
	return filepath.Join(mountPoint, "pids")
}
