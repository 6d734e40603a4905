package component

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Run starts each component when its dependencies are ready. It returns after all components have
// stopped: nil after ctx is done, or the error of the first component that failed. A failed
// component causes all other components to stop. A component stops after the components that depend
// on it, so that clients can still connect to their server. Run calls allReady once, when all
// components are ready or on standby.
func Run(ctx context.Context, entries []Entry, report func(Event), allReady func(context.Context)) error {
	if err := CheckOrder(entries); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &runner{entries: entries, report: report, cancel: cancel, phases: map[string]phases{}}
	for _, entry := range entries {
		r.phases[entry.Name()] = phases{ready: make(chan struct{}), standby: make(chan struct{}), done: make(chan struct{})}
		report(Event{Component: entry.Name(), State: Waiting})
	}
	var group sync.WaitGroup
	for _, entry := range entries {
		group.Go(func() { r.start(ctx, entry) })
	}
	group.Go(func() {
		if r.waitComplete(ctx) {
			allReady(ctx)
		}
	})
	group.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// runner runs the components of a process.
type runner struct {
	entries []Entry
	report  func(Event)
	cancel  context.CancelCauseFunc
	phases  map[string]phases // phases by component name
}

// phases contains channels that are closed when a component is ready, when it is on standby, and
// when it has stopped.
type phases struct{ ready, standby, done chan struct{} }

// start waits for an entry's gate and dependencies, and runs the component until ctx is done and
// all components that depend on it have stopped.
func (r *runner) start(ctx context.Context, entry Entry) {
	defer close(r.phases[entry.Name()].done)
	if entry.Gate != nil && entry.Gate.Wait(ctx, sync.OnceFunc(func() { r.standBy(entry.Name()) })) != nil {
		return
	}
	if !r.waitReady(ctx, entry.After) {
		return
	}
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		if d, ok := entry.Component.(Drainer); ok {
			d.Drain()
		}
		for _, other := range r.entries {
			if slices.Contains(other.After, entry.Name()) {
				<-r.phases[other.Name()].done
			}
		}
		stop()
	}()
	if err := r.run(runCtx, entry.Component); err != nil {
		slog.Error("component failed", "component", entry.Name(), "error", err)
		r.cancel(err)
	}
	<-done
}

func (r *runner) standBy(name string) {
	r.report(Event{Component: name, State: Standby})
	close(r.phases[name].standby)
}

// waitComplete waits until each component is ready or on standby. It returns false if ctx is done
// first.
func (r *runner) waitComplete(ctx context.Context) bool {
	for _, phases := range r.phases {
		select {
		case <-phases.ready:
		case <-phases.standby:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// waitReady waits until the named components are ready. It returns false if ctx is done first.
func (r *runner) waitReady(ctx context.Context, names []string) bool {
	for _, name := range names {
		select {
		case <-r.phases[name].ready:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// run runs one component and reports its state changes.
func (r *runner) run(ctx context.Context, c Component) error {
	name := c.Name()
	r.report(Event{Component: name, State: Starting})
	slog.Info("component starts", "component", name)
	if noter, ok := c.(Noter); ok {
		noter.Notes(func(note string) { r.report(Event{Component: name, State: Ready, Note: note}) })
	}
	ready := sync.OnceFunc(func() {
		slog.Info("component is ready", "component", name)
		r.report(Event{Component: name, State: Ready})
		close(r.phases[name].ready)
	})
	err := withLabel(ctx, name, func(ctx context.Context) error { return c.Run(ctx, ready) })
	switch {
	case err == nil && ctx.Err() != nil:
		r.report(Event{Component: name, State: Stopped})
		return nil
	case err == nil:
		err = errors.New("stopped unexpectedly")
	}
	if !strings.HasPrefix(err.Error(), name+": ") {
		err = fmt.Errorf("%s: %w", name, err)
	}
	r.report(Event{Component: name, State: Failed, Error: err.Error()})
	return err
}
