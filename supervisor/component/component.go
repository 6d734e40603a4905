// Package component runs the components of a process: it starts each component after its
// dependencies, stops the components in reverse order, and reports the state of each component.
package component

import "context"

// Component is a long-lived unit of a process. Run blocks. It calls ready once, when the component
// is ready to serve, returns nil after ctx is done, and returns an error on failure.
type Component interface {
	Name() string
	Run(ctx context.Context, ready func()) error
}

// Noter is a component that can be ready although some of its dependencies are missing, such as a
// router without its HAProxy.
type Noter interface {
	Component
	// Notes sets the function that the component calls with a description of what it lacks, or with
	// "" if it lacks nothing. Notes is called once, before Run.
	Notes(note func(text string))
}

// Drainer is a component that can become useless while the components that depend on it are still
// stopping. An example is an etcd member without its peers.
type Drainer interface {
	Component
	// Drain is called when the process begins to stop, before Run's context is done. From then on,
	// the component immediately rejects requests that would otherwise wait. Drain does not block.
	Drain()
}

// Entry is a component with its dependencies: the names of components in the same process that must
// be ready before it starts.
type Entry struct {
	Component
	After []string
	// Gate, if set, admits the component. Until the component is admitted, it is on standby, and
	// its process can be ready without it.
	Gate Gate
}

// Gate admits components that must run in only one of several processes, such as the controllers in
// a cluster with several masters. If an admitted component must stop, its process exits.
type Gate interface {
	// Wait returns nil when the component can run, and an error if ctx is done first. It calls
	// standby if a different process runs the component.
	Wait(ctx context.Context, standby func()) error
}

// Closed is a gate that admits no component.
type Closed struct{}

// Wait calls standby and waits until ctx is done.
func (Closed) Wait(ctx context.Context, standby func()) error {
	standby()
	<-ctx.Done()
	return ctx.Err()
}

// Disabled returns a component that does nothing. It replaces a component that the configuration
// disables.
func Disabled(name string) Component { return disabled(name) }

type disabled string

// Name returns the disabled component's name.
func (d disabled) Name() string { return string(d) }

// Run calls ready immediately and waits until ctx is done.
func (disabled) Run(ctx context.Context, ready func()) error {
	ready()
	<-ctx.Done()
	return nil
}
