// Package componenttest runs components in tests. A component is anything with a method Run(ctx,
// ready) that blocks, calls ready once when it serves requests, and returns nil when ctx is done.
package componenttest

import (
	"context"
	"sync"
	"testing"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// Component is a component that runs in a test.
type Component struct {
	t      testing.TB
	ready  chan struct{}
	done   chan struct{}
	err    error // result of Run; valid when done is closed
	cancel context.CancelFunc
	stop   sync.Once
}

// Start starts a component. The component stops when the test ends, after the cleanups that the
// test registers later.
func Start(t testing.TB, run func(ctx context.Context, ready func()) error) *Component {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Component{t: t, ready: make(chan struct{}), done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(p.done)
		p.err = run(ctx, func() { close(p.ready) }) // a second call panics
	}()
	t.Cleanup(p.Stop)
	return p
}

// Run starts a component and waits until it is ready.
func Run(t testing.TB, run func(ctx context.Context, ready func()) error) *Component {
	t.Helper()
	p := Start(t, run)
	p.WaitReady()
	return p
}

// Ready reports whether the component is ready.
func (p *Component) Ready() bool { return closed(p.ready) }

// WaitReady waits until the component is ready. It stops the test if the component returns first or
// is not ready within a minute.
func (p *Component) WaitReady() {
	p.t.Helper()
	eventually.True(p.t, "the component is ready", func() bool {
		ended := closed(p.done)
		if ended && !p.Ready() {
			p.t.Fatalf("the component has ended before it was ready: %v", p.err)
		}
		return p.Ready()
	})
}

// Stop stops the component and waits until it returns. The test fails if the component returns an
// error or takes longer than a minute. Further calls to Stop are no-ops.
func (p *Component) Stop() {
	p.t.Helper()
	p.stop.Do(p.end)
}

func (p *Component) end() {
	p.t.Helper()
	p.cancel()
	eventually.True(p.t, "the component stops", func() bool { return closed(p.done) })
	if p.err != nil {
		p.t.Errorf("the component ended with an error: %v", p.err)
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
