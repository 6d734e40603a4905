// Package thread runs functions on a thread of their own, which may change what the kernel keeps for each
// thread: its namespaces, its priority.
package thread

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Run runs f on a thread that ends with it, and returns f's error. What f starts as a process inherits what f
// has changed; goroutines that f starts do not, since they run on other threads. A process with a parent-death
// signal gets it when f returns.
func Run(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The thread that the process began with stands for the whole process under /proc, and never ends.
			done <- Run(f) // on another one, because this is kept
			runtime.UnlockOSThread()
			return
		}
		done <- f() // not unlocked: the thread ends with the goroutine
	}()
	return <-done
}
