package memory

import (
	"os"
	"runtime/debug"
)

const (
	// target is by how much, in percent of what is in use, the heap grows before the collector runs: the API server's heap is mostly
	// long-lived, so half of Go's default trades a little processor time for about a seventh of the anonymous memory.
	target = 50
	// startLimit is how much memory, in bytes, a process may use before the collector runs during its start.
	startLimit = 512 << 20
)

// BeginStart lets a process start without the collector as long as it uses little memory: nearly all that a start of the control plane allocates stays in
// use, and looking through it again and again while it grows is a third of the processor time of that start. The caller calls end when the start is over; from then on the
// collector runs at its target. A start that never ends has the limit.
//
// An administrator's own GOGC is left alone, and so is a GOMEMLIMIT that is lower.
func BeginStart() (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	limit := debug.SetMemoryLimit(-1) // only asks
	debug.SetMemoryLimit(min(limit, startLimit))
	debug.SetGCPercent(-1)
	return func() {
		debug.SetGCPercent(target)
		debug.SetMemoryLimit(limit)
	}
}
