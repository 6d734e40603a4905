// Package hosttest gives tests of the network a host of their own: the test program starts itself again in fresh
// network and mount namespaces, so devices, nftables tables and sysctls of the machine are never touched, and every
// goroutine of the test is on that host. Pods and other machines are further network namespaces.
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

// Main runs the tests of a package on a host of their own; call it from TestMain. It needs root.
func Main(m *testing.M) {
	if os.Getenv(marker) == "" {
		os.Exit(again())
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "hosttest:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func again() int {
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

// prepare gives the new mount namespace a /run of its own, for the names of network namespaces, and brings lo up. What the host unmounts meanwhile
// is unmounted here too: volumes of clusters beside this test would be held otherwise.
func prepare() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts apart: %w", err)
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
