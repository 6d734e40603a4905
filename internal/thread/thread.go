// Package thread runs functions on a separate thread, which can change thread attributes of the
// kernel: namespaces and priority.
package thread

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Run runs f on a thread that ends with f. It returns f's error. A process that f starts inherits
// the changes of f; goroutines do not, because they run on other threads. A process with a
// parent-death signal gets it when f returns.
func Run(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread represents the whole process in /proc, and it never ends.
			done <- Run(f) // on another thread, because this one stays locked
			runtime.UnlockOSThread()
			return
		}
		done <- f() // stay locked, so that the thread ends with the goroutine
	}()
	return <-done
}
