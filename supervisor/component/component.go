// Package component runs the components of a process: it starts each one after those that it needs,
// stops them in reverse order, and reports the state of each.
package component

import "context"

// Component is a long-lived unit of a process. Run blocks. It calls ready once, when the component
// serves, returns nil after ctx has ended, and returns an error on failure.
type Component interface {
	Name() string
	Run(ctx context.Context, ready func()) error
}

// Noter is a component that can be ready without everything that it needs, such as a router
// without its HAProxy.
type Noter interface {
	Component
	// Notes passes the function that reports what the component lacks; "" if it lacks nothing. Notes
	// is called once, before Run.
	Notes(note func(text string))
}

// Drainer is a component that can no longer do useful work while the components that need it
// still stop, such as a store without its peers.
type Drainer interface {
	Component
	// Drain is called before the context of Run ends, when the process starts to stop. The component
	// then fails requests immediately that would otherwise wait. Drain does not block.
	Drain()
}

// Entry is a component with the names of the components of the same process that must be ready
// before it starts.
type Entry struct {
	Component
	After []string
	// Gate, if set, admits the component. Until then, it is on standby, and its process is complete
	// without it.
	Gate Gate
}

// Gate admits components that run in one of several processes, such as the controllers of a cluster
// with several masters. A process that must end a component exits.
type Gate interface {
	// Wait returns nil when the component can run, and an error if ctx ends first. It calls standby
	// if another process runs the component.
	Wait(ctx context.Context, standby func()) error
}

// Closed is a gate that admits no component.
type Closed struct{}

// Wait calls standby and waits until ctx ends.
func (Closed) Wait(ctx context.Context, standby func()) error {
	standby()
	<-ctx.Done()
	return ctx.Err()
}

// Disabled returns a component that does nothing, in place of one that the configuration disables.
func Disabled(name string) Component { return disabled(name) }

type disabled string

// Name returns the name of the disabled component.
func (d disabled) Name() string { return string(d) }

// Run is ready immediately and waits until ctx ends.
func (disabled) Run(ctx context.Context, ready func()) error {
	ready()
	<-ctx.Done()
	return nil
}
