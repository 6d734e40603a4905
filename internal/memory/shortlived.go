package memory

import (
	"os"
	"runtime"
	"runtime/debug"
)

// firstTarget delays a process's first garbage collection until its heap has reached 32 MiB, eight
// times Go's default of 4 MiB. Most commands exit before that.
const firstTarget = 800

// usualTarget is Go's default for the garbage collection target, in percent.
const usualTarget = 100

// DelayCollection delays the first garbage collection of a short-lived process until the heap is
// large. Later collections run as usual. It is a no-op if the administrator set GOGC.
func DelayCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(firstTarget)
	// The first collection runs this cleanup, which restores Go's default.
	runtime.AddCleanup(new([16]byte), func(int) { debug.SetGCPercent(usualTarget) }, 0)
}
