package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Component is one part that lives as long as its process. Run blocks; ready is called once, when the
// part serves; cancel stops it and it then returns nil; a failure is returned. A part that can be ready without all that it should
// do has a method Notes, which gets a function that tells what is missing.
type Component interface {
	Name() string
	Run(ctx context.Context, ready func()) error
}

// Part is a row of a process's table: a component and the parts of the same process that must be ready
// before it starts.
type Part struct {
	Component
	After []string
}

// checkOrder says whether the table can be started at all: names are unique, every part that is waited
// for exists, and nothing waits for itself.
func checkOrder(parts []Part) error {
	started := map[string]bool{}
	names := map[string]bool{}
	for _, part := range parts {
		if names[part.Name()] {
			return fmt.Errorf("part %q is in the table twice", part.Name())
		}
		names[part.Name()] = true
	}
	for progress := true; progress; {
		progress = false
		for _, part := range parts {
			if !started[part.Name()] && !slices.ContainsFunc(part.After, func(name string) bool { return !started[name] }) {
				started[part.Name()], progress = true, true
			}
		}
	}
	var stuck []string
	for _, part := range parts {
		if !started[part.Name()] {
			stuck = append(stuck, part.Name())
		}
	}
	if len(stuck) > 0 {
		return fmt.Errorf("parts %q wait for each other or for a part that does not exist", stuck)
	}
	return nil
}

// runParts starts each part as soon as those it waits for are ready, and returns when all have ended:
// nil after ctx ended, or the error of the first part that failed, which stops the others. A part is
// stopped after those that waited for it, so that the API server can still reach its store, and its
// clients it, while they say goodbye. settled is called once all are ready.
func runParts(ctx context.Context, parts []Part, report func(Event), settled func(context.Context)) error {
	if err := checkOrder(parts); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ready, ended := map[string]chan struct{}{}, map[string]chan struct{}{}
	for _, part := range parts {
		ready[part.Name()], ended[part.Name()] = make(chan struct{}), make(chan struct{})
		report(Event{Part: part.Name(), State: Waiting})
	}
	var group sync.WaitGroup
	for _, part := range parts {
		group.Go(func() {
			defer close(ended[part.Name()])
			for _, name := range part.After {
				select {
				case <-ready[name]:
				case <-ctx.Done():
					return
				}
			}
			own, stop := context.WithCancel(context.WithoutCancel(ctx))
			defer stop()
			go func() {
				<-ctx.Done()
				for _, other := range parts {
					if slices.Contains(other.After, part.Name()) {
						<-ended[other.Name()]
					}
				}
				stop()
			}()
			if err := runPart(own, part, report, ready[part.Name()]); err != nil {
				cancel(err)
			}
		})
	}
	group.Go(func() {
		for _, part := range parts {
			select {
			case <-ready[part.Name()]:
			case <-ctx.Done():
				return
			}
		}
		settled(ctx)
	})
	group.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

func runPart(ctx context.Context, part Part, report func(Event), ready chan struct{}) error {
	name := part.Name()
	report(Event{Part: name, State: Starting})
	slog.Info("part starts", "part", name)
	if noting, ok := part.Component.(interface{ Notes(func(string)) }); ok {
		noting.Notes(func(note string) { report(Event{Part: name, State: Ready, Note: note}) })
	}
	var once sync.Once
	err := part.Run(ctx, func() {
		once.Do(func() {
			slog.Info("part is ready", "part", name)
			report(Event{Part: name, State: Ready})
			close(ready)
		})
	})
	switch {
	case err == nil && ctx.Err() != nil:
		report(Event{Part: name, State: Stopped})
		return nil
	case err == nil:
		err = errors.New("it stopped by itself")
	}
	if !strings.HasPrefix(err.Error(), name+": ") {
		err = fmt.Errorf("%s: %w", name, err)
	}
	report(Event{Part: name, State: Failed, Error: err.Error()})
	slog.Error("part failed", "part", name, "error", err)
	return err
}
