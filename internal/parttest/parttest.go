// Package parttest runs components in tests: anything with a method Run(ctx, ready) that blocks,
// calls ready once when it serves, and returns nil when ctx has ended.
package parttest

import (
	"context"
	"sync"
	"testing"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// Part is a running component of a test.
type Part struct {
	t      testing.TB
	ready  chan struct{}
	ended  chan struct{}
	err    error // result of Run; valid when ended is closed
	cancel context.CancelFunc
	stop   sync.Once
}

// Start starts a component. It stops when the test ends, after the clean-ups that the test
// registers later.
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

// Run starts a component and waits until it is ready.
func Run(t testing.TB, run func(ctx context.Context, ready func()) error) *Part {
	t.Helper()
	p := Start(t, run)
	p.WaitReady()
	return p
}

// Ready reports whether the component is ready.
func (p *Part) Ready() bool { return closed(p.ready) }

// WaitReady waits until the component is ready. It ends the test if the component ends first or is
// not ready within a minute.
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

// Stop stops the component and waits for its end. The test fails if the component returns an error
// or takes longer than a minute. Further calls of Stop do nothing.
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
