package memory

import (
	"os"
	"runtime"
	"runtime/debug"
)

// firstTarget lets the collector of a process run for the first time at a heap of 32 MiB, eight times Go's 4 MiB, by which time most commands have ended.
const firstTarget = 800

// usualTarget is Go's default.
const usualTarget = 100

// DelayCollection lets the collector of a short-lived process run for the first time when its heap is a large one, and from then on as usual. An
// administrator's own GOGC is left alone.
func DelayCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(firstTarget)
	runtime.AddCleanup(new([16]byte), func(int) { debug.SetGCPercent(usualTarget) }, 0) // the first collection finds it
}
