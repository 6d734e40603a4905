package platform

import (
	"fmt"

	"github.com/slipway-platform/slipway/config/reload"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// The names of the supervisor and its processes. The processes start in this order and stop in the
// reverse order.
const (
	Supervisor   = "slipway"
	ControlPlane = "control-plane"
	Containerd   = "containerd"
	Node         = "node"
)

// entry is one line of the table of a process: the name of a component, the components of the same
// process that it starts after, and its constructor. The order of the entries has no meaning.
type entry struct {
	name  string
	after []string
	build func(*Host) (component.Component, error)
	// group is the group of components that run on one of several masters; "" if each runs it.
	group string
}

// The groups of components that one of several masters runs. Each is the name of a Lease.
const (
	upstreamControllers = "kube-controller-manager"
	upstreamScheduler   = "kube-scheduler"
	ownControllers      = "slipway-controllers"
	// imageRegistry is the group of the registry, which runs on any master if all reach its storage.
	imageRegistry = "slipway-registry"
)

// adjustable is the result of the constructor of a component that can follow changes of the
// configuration.
type adjustable struct {
	component.Component
	adjustments []reload.Adjustment
}

// build creates the components of a table. If a component reloads the configuration, it gets the
// adjustments of all components.
func (h *Host) build(table []entry) ([]component.Entry, error) {
	var entries []component.Entry
	var adjustments []reload.Adjustment
	for _, line := range table {
		c, err := line.build(h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line.name, err)
		}
		if a, ok := c.(adjustable); ok {
			c, adjustments = a.Component, append(adjustments, a.adjustments...)
		}
		next := component.Entry{Component: c, After: line.after}
		if next.Gate, err = h.gate(line); err != nil {
			return nil, err
		}
		entries = append(entries, next)
	}
	for _, entry := range entries {
		if reloader, ok := entry.Component.(*reload.Reloader); ok {
			reloader.Adjustments = adjustments
		}
	}
	return entries, nil
}

func statusOf(table []entry) []supervisor.ComponentStatus {
	var components []supervisor.ComponentStatus
	for _, e := range table {
		components = append(components, supervisor.ComponentStatus{Name: e.name, After: e.after, State: component.Stopped})
	}
	return components
}

// Groups returns the Leases of the groups of components that one of several masters runs.
func Groups() []string {
	return []string{upstreamControllers, upstreamScheduler, ownControllers, imageRegistry}
}
