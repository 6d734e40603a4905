package kit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// dispose takes the cluster down, and removes its data and everything else that the kit created. It
// returns an error for each kind of leftover.
func (c *Cluster) dispose() []error {
	var problems []error
	if c.runs {
		result, err := c.slipway("down", "--purge")
		if err == nil && result.Code != 0 {
			err = fmt.Errorf("slipway down --purge: exit code %d\n%s%s", result.Code, result.Stdout, result.Stderr)
		}
		if err != nil {
			problems = append(problems, err)
		}
		problems = append(problems, c.leftovers()...)
		if files := files(c.DataDir); len(files) > 0 {
			problems = append(problems, fmt.Errorf("files remain after down --purge: %q", files))
		}
	}
	problems = append(problems, os.RemoveAll(c.DataDir), os.RemoveAll(c.home), c.remove())
	return slices.DeleteFunc(problems, func(err error) bool { return err == nil })
}

// leftovers searches the machine, except the data directory, for the remains of a stopped cluster.
// It returns an error for each kind of leftover that it finds.
func (c *Cluster) leftovers() []error {
	var problems []error
	for _, kind := range []struct {
		name string
		find func() ([]string, error)
	}{
		{"processes", c.leftProcesses},
		{"mounts", c.leftMounts},
		{"network devices", c.leftDevices},
		{"nftables tables", c.leftTables},
		{"cgroups", c.leftCgroups},
		{"loop devices", c.leftLoops},
	} {
		switch orphans, err := kind.find(); {
		case err != nil:
			problems = append(problems, fmt.Errorf("find %s: %w", kind.name, err))
		case len(orphans) > 0:
			problems = append(problems, fmt.Errorf("%s remain after down: %q", kind.name, orphans))
		}
	}
	return problems
}

func (c *Cluster) leftProcesses() ([]string, error) {
	processes, err := c.Processes()
	var orphans []string
	for _, process := range processes {
		orphans = append(orphans, process.String())
	}
	return orphans, err
}

// leftMounts returns the mounts inside the data directory and the mounts of files in it.
func (c *Cluster) leftMounts() ([]string, error) {
	content, err := os.ReadFile("/proc/self/mountinfo")
	var orphans []string
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, c.DataDir+"/") {
			orphans = append(orphans, strings.TrimSpace(line))
		}
	}
	return orphans, err
}

func (c *Cluster) leftDevices() (orphans []string, err error) {
	err = c.Do(func() error {
		orphans, err = deviceNames()
		return err
	})
	return slices.DeleteFunc(orphans, func(name string) bool { return slices.Contains(c.devices, name) }), err
}

func (c *Cluster) leftTables() ([]string, error) {
	result, err := c.run("", "nft", "list", "tables")
	if err == nil && result.Code != 0 {
		err = errors.New(result.Stderr)
	}
	tables := strings.FieldsFunc(result.Stdout, func(r rune) bool { return r == '\n' })
	return slices.DeleteFunc(tables, func(table string) bool {
		return c.otherNetwork && !strings.Contains(table, " slipway") && !strings.HasSuffix(table, " kube-proxy")
	}), err
}

// leftCgroups returns the cluster's remaining cgroups in every hierarchy, for cgroup v1 and v2.
func (c *Cluster) leftCgroups() ([]string, error) {
	below, err := filepath.Glob("/sys/fs/cgroup/*" + c.CgroupRoot)
	if _, statErr := os.Stat("/sys/fs/cgroup" + c.CgroupRoot); statErr == nil {
		below = append(below, "/sys/fs/cgroup"+c.CgroupRoot)
	}
	return below, err
}

// leftLoops returns the loop devices whose backing files are in the data directory or in the
// client's home directory.
func (c *Cluster) leftLoops() ([]string, error) {
	output, err := exec.Command("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").Output()
	var orphans []string
	for line := range strings.Lines(string(output)) {
		if strings.Contains(line, c.DataDir+"/") || strings.Contains(line, c.home+"/") {
			orphans = append(orphans, strings.TrimSpace(line))
		}
	}
	return orphans, err
}

// files returns up to ten files and directories below dir.
func files(dir string) (paths []string) {
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && path != dir {
			paths = append(paths, path)
		}
		if len(paths) == 10 {
			return filepath.SkipAll
		}
		return nil
	})
	return paths
}
