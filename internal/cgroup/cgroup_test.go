package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// group creates a cgroup and removes it when the test ends.
func group(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("/slipway-test-%d-%s", os.Getpid(), strings.ToLower(t.Name()))
	t.Cleanup(func() {
		for _, dir := range hierarchies() {
			_ = os.Remove(filepath.Join(dir, name, "below"))
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
	})
	if err := Create(name); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestNodesDoNotShareCgroup(t *testing.T) {
	name := group(t)
	first, err := Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(name); err == nil || !strings.Contains(err.Error(), "slipway.cgroupRoot") {
		t.Errorf("a second node: %v", err)
	}
	if err := first.Close(); err != nil { // like the end of its process
		t.Fatal(err)
	}
	next, err := Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
	if _, err := Lock(name + "-missing"); err == nil {
		t.Error("a missing group is locked")
	}
}

func TestProcessIsInCgroupWithShares(t *testing.T) {
	name := group(t)
	below := name + "/below"
	if err := Create(below); err != nil {
		t.Fatal(err)
	}
	if err := SetShares(below, 4096); err != nil {
		t.Fatal(err)
	}
	if err := ProtectMemory(below, 1<<20); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("sleep", "infinity")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	if err := Add(below, command.Process.Pid); err != nil {
		t.Fatal(err)
	}
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{":cpu:" + below, ":memory:" + below, ":pids:" + below}
	if unified() {
		want = []string{"0::" + below}
	}
	for _, line := range want {
		if !strings.Contains(string(groups), line+"\n") {
			t.Errorf("the process is in\n%swant %s", groups, line)
		}
	}
	file, shares := filepath.Join(mountPoint, "cpu", below, "cpu.shares"), "4096\n"
	if unified() {
		file, shares = filepath.Join(mountPoint, below, "cpu.weight"), "157\n"
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != shares {
		t.Errorf("%s is %q, %v, want %q", file, content, err, shares)
	}
}

// TestUnifiedCgroupsEnableControllers uses plain files, because a kernel has its controllers in
// only one version.
func TestUnifiedCgroupsEnableControllers(t *testing.T) {
	mount := t.TempDir()
	for _, dir := range []string{"", "slipway", "slipway/platform"} {
		if err := os.MkdirAll(filepath.Join(mount, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(mount, dir, "cgroup.controllers"), []byte("cpu\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := createUnified(mount, "/slipway/platform/node"); err != nil {
		t.Fatal(err)
	}
	passed, err := filepath.Glob(filepath.Join(mount, "slipway", "platform", "cgroup.subtree_control"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "slipway"} {
		passed = append(passed, filepath.Join(mount, dir, "cgroup.subtree_control"))
	}
	slices.Sort(passed)
	for _, file := range passed {
		if content, err := os.ReadFile(file); err != nil || string(content) != "+cpu" {
			t.Errorf("%s: %q, %v", file, content, err)
		}
	}
	if _, err := os.Stat(filepath.Join(mount, "slipway/platform/node/cgroup.subtree_control")); err == nil {
		t.Error("a group with processes enables controllers for its children, which the kernel rejects")
	}
}
