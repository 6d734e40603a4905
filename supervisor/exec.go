package supervisor

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/supervisor/component"
)

// Reporter returns the function with which a process reports events to its supervisor. Programs
// that the process starts or executes do not inherit the descriptor.
func Reporter() func(component.Event) {
	syscall.CloseOnExec(ReportDescriptor)
	return component.Reporter(os.NewFile(ReportDescriptor, "reports"))
}

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

// Reexec is Exec for a new start of the same program. The supervisor delays the restart of a
// process that has ended, but does not notice this start.
func Reexec() error {
	// Reporter has set the flag.
	if _, err := unix.FcntlInt(ReportDescriptor, unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	return Exec("/proc/self/exe", os.Args, os.Environ())
}
