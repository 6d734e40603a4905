package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/usermode"
)

func TestMain(m *testing.M) { usermode.Main(m) }

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
	if err := first.Close(); err != nil { // closing has the same effect as the process's exit
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

// TestGroupsOfVersion2 runs on a kernel with only cgroup v2.
func TestGroupsOfVersion2(t *testing.T) {
	if !usermode.In(t) {
		return
	}
	if err := unix.Mount("cgroup2", mountPoint, "cgroup2", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Run("Lock", TestNodesDoNotShareCgroup)
	t.Run("Shares", TestProcessIsInCgroupWithShares)
	name := group(t) // parent of both tests' cgroups
	if err := ProtectMemory(name, 1<<20); err != nil {
		t.Fatal(err)
	}
	available, err := os.ReadFile(filepath.Join(mountPoint, "cgroup.controllers"))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"cgroup.controllers": string(available), "memory.min": "1048576\n", "cgroup.subtree_control": string(available)} {
		if got, err := os.ReadFile(filepath.Join(mountPoint, name, file)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v, want %q", file, got, err, want)
		}
	}
	if !strings.Contains(string(available), "memory") || !strings.Contains(string(available), "pids") {
		t.Errorf("the kernel has the controllers %s", available)
	}
	if children := Children("/"); len(children) == 0 {
		t.Error("the root cgroup has no children")
	}
	if processes := Processes("/"); !slices.Contains(processes, os.Getpid()) {
		t.Errorf("the cgroups have the processes %v, without %d", processes, os.Getpid())
	}
}
