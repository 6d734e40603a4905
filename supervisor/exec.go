package supervisor

import (
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exec replaces the program of a process that a supervisor started. The process still ends with the
// supervisor: the signal for that belongs to the thread that executes, which need not be the first
// one. Exec returns only after an error.
func Exec(path string, args, env []string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("execute %q: tie it to its supervisor: %w", path, err)
	}
	if err := syscall.Exec(path, args, env); err != nil {
		return fmt.Errorf("execute %q: %w", path, err)
	}
	return nil
}
