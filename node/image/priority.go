package image

import (
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/thread"
)

// atLowPriority runs work on a separate thread with the lowest CPU and I/O priority. If the host
// does not support priorities, work runs at normal priority.
func atLowPriority(work func() error) error {
	return thread.Run(func() error {
		const lowest = 19
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), lowest)
		// ioprio_set(2): this thread, best-effort class, lowest level in that class.
		const whoProcess, classBestEffort, level = 1, 2 << 13, 7
		_, _, _ = unix.RawSyscall(unix.SYS_IOPRIO_SET, whoProcess, uintptr(unix.Gettid()), classBestEffort|level)
		return work()
	})
}
