// Package parttest runs parts in tests: what has a method Run(ctx, ready) that blocks, calls ready once when it
// serves, and returns nil when ctx has ended.
package parttest

import (
	"context"
	"sync"
	"testing"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// Part is a part that was started for a test.
type Part struct {
	t      testing.TB
	ready  chan struct{}
	ended  chan struct{}
	err    error // what Run returned; valid when ended is closed
	cancel context.CancelFunc
	stop   sync.Once
}

// Start starts a part. It is stopped when the test ends, after the clean-up of what the test does from now on.
func Start(t testing.TB, run func(ctx context.Context, ready func()) error) *Part {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Part{t: t, ready: make(chan struct{}), ended: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(p.ended)
		p.err = run(ctx, func() { close(p.ready) }) // a second call panics
	}()
	t.Cleanup(p.Stop)
	return p
}

// Run starts a part and waits until it is ready.
func Run(t testing.TB, run func(ctx context.Context, ready func()) error) *Part {
	t.Helper()
	p := Start(t, run)
	p.WaitReady()
	return p
}

// Ready tells whether the part has said that it is ready.
func (p *Part) Ready() bool { return closed(p.ready) }

// WaitReady waits until the part is ready, and ends the test when the part ends before, or when that takes a minute.
func (p *Part) WaitReady() {
	p.t.Helper()
	eventually.True(p.t, "the part is ready", func() bool {
		ended := closed(p.ended)
		if ended && !p.Ready() {
			p.t.Fatalf("the part has ended before it was ready: %v", p.err)
		}
		return p.Ready()
	})
}

// Stop stops the part and waits for its end. The test fails when the part returns an error or takes a minute. Stop may be called again.
func (p *Part) Stop() {
	p.t.Helper()
	p.stop.Do(p.end)
}

func (p *Part) end() {
	p.t.Helper()
	p.cancel()
	eventually.True(p.t, "the part stops", func() bool { return closed(p.ended) })
	if p.err != nil {
		p.t.Errorf("the part ended with an error: %v", p.err)
	}
}

func closed(event <-chan struct{}) bool {
	select {
	case <-event:
		return true
	default:
		return false
	}
}
