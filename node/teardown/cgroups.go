package teardown

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Cgroups removes the cgroup at the path root (such as /slipway) and its descendants, in each
// version 1 hierarchy and in version 2. A cgroup that contains processes is kept, and the error
// lists the processes. Cgroups returns an error if root is the root of all cgroups.
func Cgroups(root string) error {
	dirs, err := cgroupDirs(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, removeCgroup(dir))
	}
	return errors.Join(errs...)
}

// InCgroup returns the processes in the cgroup at the path root and its descendants, in any
// hierarchy, except for the current process and its ancestors.
func InCgroup(root string) ([]Process, error) {
	if root == "" {
		return nil, nil
	}
	dirs, err := cgroupDirs(root)
	if err != nil {
		return nil, err
	}
	excluded := ancestors(os.Getpid())
	byPID := map[int]Process{}
	for _, dir := range dirs {
		for _, cgroup := range tree(dir) {
			for _, pid := range members(cgroup) {
				if p, err := readProcess(pid); err == nil && !excluded[pid] {
					byPID[pid] = p
				}
			}
		}
	}
	var list []Process
	for _, p := range byPID {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Process) int { return a.PID - b.PID })
	return list, nil
}

// cgroupDirs returns the directory of the cgroup at the path root in each mounted hierarchy, even
// if the directory does not exist.
func cgroupDirs(root string) ([]string, error) {
	if filepath.Clean("/"+root) == "/" {
		return nil, fmt.Errorf("cgroup %q: must not be the root cgroup of the host", root)
	}
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("list cgroup hierarchies: %w", err)
	}
	var dirs []string
	for _, m := range mounts {
		if dir := filepath.Join(m.Mountpoint, root); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// removeCgroup removes the cgroup at dir and its descendants. It retries while a cgroup is busy,
// because its last processes might have exited only a moment ago.
func removeCgroup(dir string) error {
	deadline := time.Now().Add(busyTimeout)
	for {
		var errs []error
		cgroups := tree(dir)
		slices.Reverse(cgroups)
		for _, cgroup := range cgroups {
			if err := unix.Rmdir(cgroup); err != nil && !errors.Is(err, unix.ENOENT) {
				errs = append(errs, fmt.Errorf("cgroup %q remains: %w%s", cgroup, err, occupants(cgroup)))
			}
		}
		if len(errs) == 0 || time.Now().After(deadline) {
			return errors.Join(errs...)
		}
		time.Sleep(busyDelay)
	}
}

// tree returns dir and its descendants, with parents first. It returns nothing if dir does not
// exist.
func tree(dir string) []string {
	var cgroups []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // the cgroup was removed in the meantime
		}
		if entry.IsDir() {
			cgroups = append(cgroups, path)
		}
		return nil
	})
	return cgroups
}

// members returns the PIDs of the processes that are directly in the cgroup.
func members(cgroup string) []int {
	data, err := os.ReadFile(filepath.Join(cgroup, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for field := range strings.FieldsSeq(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// occupants returns the end of an error message: a list of the processes that are directly in the
// cgroup.
func occupants(cgroup string) string {
	var names []string
	for _, pid := range members(cgroup) {
		if p, err := readProcess(pid); err == nil {
			names = append(names, fmt.Sprintf("%d (%s)", p.PID, p.Name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ": process " + strings.Join(names, ", ") + " is in it; end it"
}
