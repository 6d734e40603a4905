package preflight

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// checkCgroups checks the cgroup controllers that the kubelet and runc use. The unified hierarchy
// (version 2) always supports device control and freezing.
func checkCgroups(_ context.Context, _ Requirements, machine Machine) []Problem {
	if content, err := os.ReadFile(filepath.Join(machine.Root, "sys/fs/cgroup/cgroup.controllers")); err == nil {
		return missingControllers(strings.Fields(string(content)), []string{"cpu", "cpuset", "memory", "pids"})
	}
	mounted, err := machine.cgroupMounts()
	if err != nil {
		return []Problem{{Error, "cgroups", err.Error(), "mount -t proc proc /proc"}}
	}
	if len(mounted) == 0 {
		return []Problem{{Error, "cgroups", "are not mounted below /sys/fs/cgroup", "mount -t cgroup2 cgroup2 /sys/fs/cgroup"}}
	}
	return missingControllers(mounted, []string{"cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids"})
}

// missingControllers returns a problem for each controller that is in want but not in have.
func missingControllers(have, want []string) []Problem {
	var problems []Problem
	for _, name := range want {
		if slices.Contains(have, name) {
			continue
		}
		remedy := "use a kernel that has it, and systemd or cgroupfs-mount to mount it"
		if name == "memory" { // some distributions disable this controller
			remedy = "add cgroup_enable=memory to the kernel's command line and reboot the machine"
		}
		problems = append(problems, Problem{Error, "cgroup " + name, "is not available", remedy})
	}
	return problems
}

// cgroupMounts returns the version 1 controllers that are mounted in the standard directory.
func (m Machine) cgroupMounts() ([]string, error) {
	file, err := os.Open(filepath.Join(m.Root, "proc/self/mountinfo"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	mounts, err := mountinfo.GetMountsFromReader(file, func(mount *mountinfo.Info) (skip, stop bool) {
		return mount.FSType != "cgroup" || !strings.HasPrefix(mount.Mountpoint, "/sys/fs/cgroup/"), false
	})
	var controllers []string
	for _, mount := range mounts {
		controllers = append(controllers, strings.Split(mount.VFSOptions, ",")...)
	}
	return controllers, err
}
