package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const cgroupMount = "/sys/fs/cgroup"

// makeCgroup makes the cgroup that kubelet is told to put its pods below, in every hierarchy that
// kubelet uses: kubelet refuses to start where it is missing. Version 2 has one hierarchy, whose
// controllers have to be passed down; version 1 has one directory a controller.
func makeCgroup(root string) error {
	if root == "" || root == "/" {
		return nil
	}
	var problems []error
	for _, dir := range cgroupHierarchies() {
		if err := os.MkdirAll(filepath.Join(dir, root), 0o755); err != nil {
			problems = append(problems, fmt.Errorf("create cgroup: %w", err))
			continue
		}
		if filepath.Base(dir) == "cpuset" {
			problems = append(problems, inheritCpuset(dir, root))
		}
	}
	return errors.Join(problems...)
}

// lockCgroup keeps a cgroup for this process, until it closes the file or ends: kubelet ends pods below it that it does not know, those of another
// cluster on this machine too.
func lockCgroup(root string) (*os.File, error) {
	hierarchies := cgroupHierarchies()
	if len(hierarchies) == 0 {
		return nil, fmt.Errorf("lock cgroup %q: no hierarchy is mounted at %s", root, cgroupMount)
	}
	dir, err := os.Open(filepath.Join(hierarchies[0], root))
	if err != nil {
		return nil, fmt.Errorf("lock cgroup: %w", err)
	}
	if err = dir.Chmod(0o711); err == nil { // who cannot open it cannot lock it
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errors.New("another node of this machine has its pods there; give each a slipway.cgroupRoot of its own in its NodeConfig")
	}
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("lock cgroup %q: %w", root, err)
	}
	return dir, nil
}

// cgroupHierarchies lists the mounted hierarchies that limit pods.
func cgroupHierarchies() []string {
	var stat unix.Statfs_t
	if unix.Statfs(cgroupMount, &stat) == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC {
		return []string{cgroupMount}
	}
	var dirs []string
	for _, controller := range []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "hugetlb", "blkio", "devices", "freezer", "systemd"} {
		dir := filepath.Join(cgroupMount, controller)
		if unix.Statfs(dir, &stat) == nil && stat.Type == unix.CGROUP_SUPER_MAGIC {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// inheritCpuset copies the processors and memory nodes of the parent into each new cpuset: in version
// 1 they begin empty, and no process can enter such a group.
func inheritCpuset(hierarchy, root string) error {
	path := hierarchy
	for _, name := range strings.Split(strings.Trim(root, "/"), "/") {
		parent := path
		path = filepath.Join(path, name)
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			own, err := os.ReadFile(filepath.Join(path, file))
			if err != nil {
				return fmt.Errorf("read cgroup: %w", err)
			}
			if strings.TrimSpace(string(own)) != "" {
				continue
			}
			value, err := os.ReadFile(filepath.Join(parent, file))
			if err != nil {
				return fmt.Errorf("read cgroup: %w", err)
			}
			if err := os.WriteFile(filepath.Join(path, file), value, 0o644); err != nil {
				return fmt.Errorf("write cgroup: %w", err)
			}
		}
	}
	return nil
}
