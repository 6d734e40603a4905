// Package hosttest runs network tests on a separate host. It re-executes the test program in new
// network and mount namespaces, so that all goroutines run on the separate host. Tests therefore do
// not change the machine's devices, nftables tables or sysctls. Pods and other machines are
// additional network namespaces.
package hosttest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
)

const marker = "SLIPWAY_HOSTTEST"

// Main runs a package's tests on a separate host. Call it from TestMain. It requires root.
func Main(m *testing.M) {
	if os.Getenv(marker) == "" {
		os.Exit(reexec())
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "hosttest:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func reexec() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), marker+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "hosttest:", err)
		return 1
	}
	return 0
}

// prepare mounts a separate /run, for the names of network namespaces, in the new mount namespace,
// and sets lo up. Unmounts on the machine must propagate to the mount namespace. Otherwise, volumes
// of other clusters on the machine would stay mounted in it.
func prepare() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	lo, err := netlinksafe.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find device lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set device lo up: %w", err)
	}
	return nil
}

// Run runs a shell command on the host, and returns its output. It ends the test if the command
// fails.
func Run(t testing.TB, command string) string {
	t.Helper()
	output, err := exec.Command("sh", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, output)
	}
	return string(output)
}
