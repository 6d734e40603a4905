package platform

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// needless are the capabilities that neither the control plane nor a FlexVolume driver uses, which
// it calls to attach volumes. Drivers need the others: they load modules, make devices and mount.
//
// Containerd and the node keep every capability, because a privileged container has those that
// containerd has.
func needless() []uintptr {
	return []uintptr{
		unix.CAP_AUDIT_CONTROL, unix.CAP_AUDIT_READ, unix.CAP_AUDIT_WRITE, unix.CAP_BLOCK_SUSPEND, unix.CAP_BPF, unix.CAP_CHECKPOINT_RESTORE,
		unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_NET_BROADCAST, unix.CAP_PERFMON, unix.CAP_SYSLOG, unix.CAP_SYS_BOOT,
		unix.CAP_SYS_PACCT, unix.CAP_SYS_PTRACE, unix.CAP_SYS_TIME, unix.CAP_SYS_TTY_CONFIG, unix.CAP_WAKE_ALARM,
	}
}

// dropCapabilities gives up capabilities for good, for this process and all that it starts.
func dropCapabilities(dropped []uintptr) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // 32 capabilities each
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	for _, capability := range dropped {
		// Each thread has its own; a new one has those of the thread that makes it.
		_, _, err := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, capability, 0)
		if err != 0 && !errors.Is(err, unix.EINVAL) { // the kernel does not know it
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
		set, bit := &sets[capability/32], uint32(1)<<(capability%32)
		set.Effective &^= bit
		set.Permitted &^= bit
		set.Inheritable &^= bit
	}
	_, _, err := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets[0])), 0)
	if err != 0 {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}
