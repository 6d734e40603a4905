package supervisor

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/supervisor/component"
)

// Reporter returns the function that reports a process's events to its supervisor. Programs that
// the process starts or executes do not inherit the file descriptor.
func Reporter() func(component.Event) {
	syscall.CloseOnExec(ReportDescriptor)
	return component.Reporter(os.NewFile(ReportDescriptor, "reports"))
}

// Exec replaces the program of a process that a supervisor started. It sets the parent death signal
// of the thread that calls exec, which does not have to be the first thread. As a result, the
// kernel still kills the process when the supervisor exits. Exec returns only after an error.
func Exec(path string, args, env []string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("execute %q: set parent death signal: %w", path, err)
	}
	if err := syscall.Exec(path, args, env); err != nil {
		return fmt.Errorf("execute %q: %w", path, err)
	}
	return nil
}

// Reexec is like Exec but starts the same program again. Unlike the restart of a process that has
// exited, which the supervisor delays, it takes effect immediately.
func Reexec() error {
	// Clear the close-on-exec flag, which Reporter has set.
	if _, err := unix.FcntlInt(ReportDescriptor, unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	return Exec("/proc/self/exe", os.Args, os.Environ())
}
