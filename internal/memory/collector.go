package memory

import (
	"os"
	"runtime/debug"
)

const (
	// target is by how much, in percent of what is in use, the heap grows before the collector runs: the API server's heap is mostly
	// long-lived, so less than half of Go's default trades a little processor time for about a fifth of the anonymous memory.
	target = 40
	// startTarget is target during a start. Nearly all that a start of the control plane allocates stays in use, and looking through it again and
	// again while it grows is a third of the processor time of that start. Without any collection the start is no faster, and what stays
	// is scattered over so much memory that thirty mebibytes more are kept for good.
	startTarget = 150
)

// BeginStart lets the collector of a process run seldom during its start. The caller calls end when the start is over. An administrator's own GOGC is left alone.
func BeginStart() (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetGCPercent(startTarget)
	return func() { debug.SetGCPercent(target) }
}
