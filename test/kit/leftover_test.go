package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestOrphansAreFound creates an orphan of each kind that a broken `slipway down` could leave
// behind.
func TestOrphansAreFound(t *testing.T) {
	c := &Cluster{Machine: testMachine(t), DataDir: t.TempDir(), home: t.TempDir(), t: t}
	c.CgroupRoot = "/slipway-" + c.name
	if problems := c.leftovers(); len(problems) > 0 {
		t.Fatalf("remains of a cluster that never ran: %v", problems)
	}
	tests := []struct {
		name  string
		leave func(t *testing.T)
	}{
		{"processes", c.leaveProcess},
		{"mounts", func(t *testing.T) {
			dir := filepath.Join(c.DataDir, "volume")
			must(t, os.Mkdir(dir, 0o700))
			must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
			t.Cleanup(func() { must(t, unix.Unmount(dir, 0)) })
		}},
		{"network devices", func(t *testing.T) {
			attributes := netlink.NewLinkAttrs()
			attributes.Name = "left"
			device := &netlink.Bridge{LinkAttrs: attributes}
			must(t, c.Do(func() error { return netlink.LinkAdd(device) }))
			t.Cleanup(func() { must(t, c.Do(func() error { return netlink.LinkDel(device) })) })
		}},
		{"nftables tables", func(t *testing.T) {
			must(t, c.Do(func() error { return nft("table inet left {}") }))
			t.Cleanup(func() { must(t, c.Do(func() error { return nft("delete table inet left") })) })
		}},
		{"cgroups", func(t *testing.T) {
			dir := "/sys/fs/cgroup/memory" + c.CgroupRoot
			if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
				dir = "/sys/fs/cgroup" + c.CgroupRoot
			}
			must(t, os.Mkdir(dir, 0o755))
			t.Cleanup(func() { must(t, unix.Rmdir(dir)) })
		}},
		{"loop devices", c.leaveLoop},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.leave(t)
			problems := c.leftovers()
			if len(problems) != 1 || !strings.Contains(problems[0].Error(), tt.name+" remain after down: ") {
				t.Errorf("found %v", problems)
			}
		})
	}
}

func (c *Cluster) leaveProcess(t *testing.T) {
	command := exec.Command("sh", "-c", "read line", filepath.Join(c.DataDir, "run"))
	input, err := command.StdinPipe()
	must(t, err)
	must(t, command.Start())
	must(t, waitFor(func(context.Context) error { // wait for the process's arguments in /proc
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", command.Process.Pid))
		if err == nil && len(line) == 0 {
			err = errors.New("the process has no command line")
		}
		return err
	}))
	t.Cleanup(func() {
		input.Close()
		_ = command.Wait() // fails, because the shell's read fails at the end of input
	})
}

func (c *Cluster) leaveLoop(t *testing.T) {
	image := filepath.Join(c.DataDir, "image")
	must(t, os.WriteFile(image, make([]byte, 1<<20), 0o600))
	output, err := exec.Command("losetup", "--find", "--show", image).Output()
	must(t, err)
	device := strings.TrimSpace(string(output))
	t.Cleanup(func() { must(t, exec.Command("losetup", "--detach", device).Run()) })
}

func TestKillEndsProcess(t *testing.T) {
	c := &Cluster{DataDir: t.TempDir(), CgroupRoot: "/none", t: t}
	command := exec.Command("sh", "-c", "read line", filepath.Join(c.DataDir, "run"))
	_, err := command.StdinPipe()
	must(t, err)
	must(t, command.Start())
	c.kill(Process{PID: command.Process.Pid})
	var exit *exec.ExitError
	if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Errorf("process ended with %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
