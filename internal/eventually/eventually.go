// Package eventually waits in tests for what comes about on its own: a process that ends, a controller that
// acts, a device that the kernel removes.
package eventually

import (
	"fmt"
	"testing"
	"time"
)

const (
	// patience is long, since it only passes in a test that fails: a loaded machine is slow.
	patience = time.Minute
	interval = 10 * time.Millisecond
)

// True waits until the condition holds. It ends the test, naming what it waited for, when that takes a minute.
func True(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if !poll(patience, condition) {
		t.Fatalf("%s: not within %v", what, patience)
	}
}

// Equal waits until got returns want. It ends the test, with the last value, when that takes a minute.
func Equal[T comparable](t testing.TB, what string, got func() T, want T) {
	t.Helper()
	var last T
	if !poll(patience, func() bool { last = got(); return last == want }) {
		t.Fatalf("%s: %s, want %s, for %v", what, show(last), show(want), patience)
	}
}

func show(value any) string {
	if text, ok := value.(string); ok {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%+v", value)
}

// poll asks at once and then again and again; the condition has a last chance when the time is over.
func poll(patience time.Duration, condition func() bool) bool {
	late := time.NewTimer(patience)
	defer late.Stop()
	again := time.NewTicker(interval)
	defer again.Stop()
	for !condition() {
		select {
		case <-again.C:
		case <-late.C:
			return condition()
		}
	}
	return true
}
