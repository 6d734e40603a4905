// Package capability drops a process's Linux capabilities.
package capability

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Drop removes capabilities permanently from this process and all processes that it starts.
func Drop(capabilities ...uintptr) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // 32 capabilities each
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	for _, capability := range capabilities {
		// Drop the capability in all threads, because each thread has its own capability set. A new
		// thread inherits the set of the thread that creates it.
		_, _, err := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, capability, 0)
		// EINVAL means that the kernel does not support the capability.
		if err != 0 && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
		set, bit := &sets[capability/32], uint32(1)<<(capability%32)
		set.Effective &^= bit
		set.Permitted &^= bit
		set.Inheritable &^= bit
	}
	_, _, err := syscall.AllThreadsSyscall(unix.SYS_CAPSET,
		uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets[0])), 0)
	if err != 0 {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}
