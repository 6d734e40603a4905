package componenttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a testing.TB for tests that are expected to fail.
type recorder struct {
	testing.TB
	messages []string
	cleanups []func()
}

func (*recorder) Helper()            {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, a ...any) {
	r.messages = append(r.messages, fmt.Sprintf(format, a...))
}
func (r *recorder) Fatalf(format string, a ...any) {
	r.Errorf(format, a...)
	runtime.Goexit()
}

// failures runs a test and its cleanups. It returns the messages of its failures.
func failures(t *testing.T, test func(testing.TB)) string {
	r := &recorder{TB: t}
	steps := []func(){func() { test(r) }}
	for len(steps) > 0 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			steps[0]()
		}()
		<-done
		steps = steps[1:]
		if len(steps) == 0 {
			slices.Reverse(r.cleanups)
			steps, r.cleanups = r.cleanups, nil
		}
	}
	return strings.Join(r.messages, "; ")
}

func good(ctx context.Context, ready func()) error {
	ready()
	<-ctx.Done()
	return nil
}

// The tests run in a synctest bubble, whose fake clock advances without real waits.
func TestRunReportsBrokenComponents(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name string
		test func(testing.TB)
		want string
	}{
		{"good", func(t testing.TB) {
			if !Run(t, good).Ready() {
				t.Errorf("not ready")
			}
		}, ""},
		{"stopped twice", func(t testing.TB) {
			p := Run(t, good)
			p.Stop()
			p.Stop()
		}, ""},
		{"never ready", func(t testing.TB) {
			Run(t, func(ctx context.Context, _ func()) error { <-ctx.Done(); return nil })
		}, "the component is ready: not within 1m0s"},
		{"ready late", func(t testing.TB) {
			p := Start(t, func(ctx context.Context, ready func()) error {
				<-time.After(time.Second)
				return good(ctx, ready)
			})
			if p.Ready() {
				t.Errorf("ready immediately")
			}
			p.WaitReady()
		}, ""},
		{"failed before it was ready", func(t testing.TB) {
			Run(t, func(context.Context, func()) error { return broken })
		}, "the component has ended before it was ready: broken; the component ended with an error: broken"},
		{"failed afterwards", func(t testing.TB) {
			Run(t, func(_ context.Context, ready func()) error { ready(); return broken })
		}, "the component ended with an error: broken"},
		{"does not stop", func(t testing.TB) {
			Run(t, func(ctx context.Context, ready func()) error {
				ready()
				<-time.After(time.Hour)
				return nil
			})
		}, "the component stops: not within 1m0s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := failures(t, tt.test); got != tt.want {
					t.Errorf("the failures are %q, want %q", got, tt.want)
				}
				<-time.After(time.Hour) // the component ends before this timer
			})
		})
	}
}
