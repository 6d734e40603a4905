// Package thread runs functions on a separate thread, so that they can change the thread's kernel
// attributes: namespaces and priority.
package thread

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Run runs f on a thread that exits when f returns. It returns f's error. A process that f starts
// inherits f's changes. Goroutines that f starts do not, because they run on other threads. A
// process with a parent-death signal receives the signal when f returns.
func Run(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// Do not run f on the main thread, which represents the whole process in /proc and must
			// not exit.
			done <- Run(f) // use another thread, because this thread stays locked
			runtime.UnlockOSThread()
			return
		}
		done <- f() // the locked thread ends with the goroutine
	}()
	return <-done
}
