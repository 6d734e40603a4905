package memory

import (
	"os"
	"runtime/debug"
)

// target is the garbage collection target in percent. The API server's heap is mostly long-lived,
// so less than half of Go's default costs little CPU time and saves about a fifth of anonymous
// memory. This holds for the start too: the more garbage the heap takes up in between, the more
// scattered are the objects that stay, and pages with a single object stay in use. A target of 150
// during the start kept 60 MiB more.
const target = 40

// LimitGarbage sets the garbage collection target of a process that runs for long. It does nothing
// if the administrator set GOGC.
func LimitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(target)
	}
}
