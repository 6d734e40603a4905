// Package eventually waits in tests for asynchronous changes: for example, until a process exits, a
// controller has acted, or the kernel has removed a device.
package eventually

import (
	"fmt"
	"testing"
	"time"
)

const (
	// timeout is long because only a failing test waits that long, and because a loaded machine is
	// slow.
	timeout  = time.Minute
	interval = 10 * time.Millisecond
)

// True waits until the condition is true. After a minute, it stops the test with a message that
// contains description.
func True(t testing.TB, description string, condition func() bool) {
	t.Helper()
	if !poll(timeout, condition) {
		t.Fatalf("%s: not within %v", description, timeout)
	}
}

// Equal waits until got returns want. After a minute, it stops the test with a message that
// contains description and the last value.
func Equal[T comparable](t testing.TB, description string, got func() T, want T) {
	t.Helper()
	var last T
	if !poll(timeout, func() bool { last = got(); return last == want }) {
		t.Fatalf("%s: %s, want %s, for %v", description, show(last), show(want), timeout)
	}
}

func show(value any) string {
	if text, ok := value.(string); ok {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%+v", value)
}

// poll checks the condition immediately, then periodically, and one last time after the timeout.
func poll(timeout time.Duration, condition func() bool) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-timer.C:
			return condition()
		}
	}
	return true
}
