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

// dispose takes the cluster down with its data, removes what the kit made, and returns what was
// left behind.
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
			problems = append(problems, fmt.Errorf("left behind by down --purge: files %q", files))
		}
	}
	problems = append(problems, os.RemoveAll(c.DataDir), os.RemoveAll(c.home), c.remove())
	return slices.DeleteFunc(problems, func(err error) bool { return err == nil })
}

// leftovers returns what of a stopped cluster is still on the machine, apart from its data.
func (c *Cluster) leftovers() []error {
	var problems []error
	for _, look := range []struct {
		what string
		find func() ([]string, error)
	}{
		{"processes", c.leftProcesses},
		{"mounts", c.leftMounts},
		{"network devices", c.leftDevices},
		{"nftables tables", c.leftTables},
		{"control groups", c.leftCgroups},
		{"loop devices", c.leftLoops},
	} {
		switch found, err := look.find(); {
		case err != nil:
			problems = append(problems, fmt.Errorf("look for %s: %w", look.what, err))
		case len(found) > 0:
			problems = append(problems, fmt.Errorf("left behind by down: %s %q", look.what, found))
		}
	}
	return problems
}

func (c *Cluster) leftProcesses() ([]string, error) {
	processes, err := c.Processes()
	var found []string
	for _, process := range processes {
		found = append(found, process.String())
	}
	return found, err
}

// leftMounts returns mount points below the data directory and mounts of something that lies there.
func (c *Cluster) leftMounts() ([]string, error) {
	content, err := os.ReadFile("/proc/self/mountinfo")
	var found []string
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, c.DataDir+"/") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found, err
}

func (c *Cluster) leftDevices() (found []string, err error) {
	err = c.Do(func() error {
		found, err = deviceNames()
		return err
	})
	return slices.DeleteFunc(found, func(name string) bool { return slices.Contains(c.devices, name) }), err
}

func (c *Cluster) leftTables() ([]string, error) {
	result, err := c.run("", "nft", "list", "tables")
	if err == nil && result.Code != 0 {
		err = errors.New(result.Stderr)
	}
	return strings.FieldsFunc(result.Stdout, func(r rune) bool { return r == '\n' }), err
}

// leftCgroups looks in every hierarchy, of version 1 or 2.
func (c *Cluster) leftCgroups() ([]string, error) {
	below, err := filepath.Glob("/sys/fs/cgroup/*" + c.CgroupRoot)
	if _, statErr := os.Stat("/sys/fs/cgroup" + c.CgroupRoot); statErr == nil {
		below = append(below, "/sys/fs/cgroup"+c.CgroupRoot)
	}
	return below, err
}

// leftLoops returns loop devices whose file lies in the data directory or beside the drivers.
func (c *Cluster) leftLoops() ([]string, error) {
	output, err := exec.Command("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").Output()
	var found []string
	for line := range strings.Lines(string(output)) {
		if strings.Contains(line, c.DataDir+"/") || strings.Contains(line, c.home+"/") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found, err
}

// files returns up to ten files and directories below dir.
func files(dir string) (found []string) {
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && path != dir {
			found = append(found, path)
		}
		if len(found) == 10 {
			return filepath.SkipAll
		}
		return nil
	})
	return found
}
