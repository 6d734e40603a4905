// Package memory gives memory back to the machine.
package memory

import (
	"context"
	"runtime/debug"
	"time"
)

// settle is how long a process goes on allocating after it became ready: informers fill, caches build.
const settle = 10 * time.Second

// ReleaseAfterStart returns to the machine what the start of this process needed and its running does
// not: Go would keep it for minutes. It waits until the process has settled, or ctx ends.
func ReleaseAfterStart(ctx context.Context) {
	select {
	case <-time.After(settle):
		debug.FreeOSMemory()
	case <-ctx.Done():
	}
}
