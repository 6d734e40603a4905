package eventually

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a testing.TB for tests that are expected to fail.
type recorder struct {
	testing.TB
	message string
}

func (*recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure runs a test. It returns the message that stops the test, or "".
func failure(t *testing.T, test func(testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	return r.message
}

// The tests run in a synctest bubble, whose fake clock advances without real waits.
func TestWaiting(t *testing.T) {
	after := func(d time.Duration) func() bool {
		start := time.Now()
		return func() bool { return time.Since(start) >= d }
	}
	word := func(d time.Duration) func() string {
		condition := after(d)
		return func() string {
			if condition() {
				return "late"
			}
			return "early"
		}
	}
	tests := []struct {
		name string
		test func(testing.TB)
		want string
	}{
		{"at once", func(t testing.TB) { True(t, "the sun rises", func() bool { return true }) }, ""},
		{"later", func(t testing.TB) { True(t, "the sun rises", after(59*time.Second)) }, ""},
		{"never", func(t testing.TB) { True(t, "the sun rises", func() bool { return false }) }, "the sun rises: not within 1m0s"},
		{"equal immediately", func(t testing.TB) { Equal(t, "time of day", word(0), "late") }, ""},
		{"equal later", func(t testing.TB) { Equal(t, "time of day", word(time.Second), "late") }, ""},
		{"other text", func(t testing.TB) { Equal(t, "time of day", word(time.Hour), "late") }, `time of day: "early", want "late"`},
		{"other number", func(t testing.TB) { Equal(t, "moons", func() int { return 1 }, 2) }, "moons: 1, want 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := failure(t, tt.test)
				if (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
					t.Errorf("failed with %q, want %q", got, tt.want)
				}
			})
		})
	}
}

func TestConditionIsCheckedAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		holds := poll(time.Second, func() bool {
			<-time.After(2 * time.Second)
			calls++
			return calls == 2
		})
		if !holds {
			t.Error("the condition was not checked after the timeout")
		}
	})
}
