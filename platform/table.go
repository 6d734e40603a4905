package platform

import (
	"fmt"

	"github.com/slipway-platform/slipway/config/reload"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// Names of the supervisor and its processes. The processes start in this order and stop in reverse
// order.
const (
	Supervisor   = "slipway"
	ControlPlane = "control-plane"
	Containerd   = "containerd"
	Node         = "node"
)

// entry is an entry in a process's table: a component's name, the components in the same process
// that must be ready before it starts, and its constructor. The order of the entries is not
// significant.
type entry struct {
	name  string
	after []string
	build func(*Host) (component.Component, error)
	// group is the name of the leader election group, or empty if each master runs the component.
	// Only one master at a time runs the components in a group.
	group string
}

// Groups of components that run on only one of several masters. Each value is the name of a Lease.
const (
	upstreamControllers = "kube-controller-manager"
	upstreamScheduler   = "kube-scheduler"
	ownControllers      = "slipway-controllers"
	// imageRegistry is the registry's group. The registry can run on any master if all masters can
	// reach its storage.
	imageRegistry = "slipway-registry"
)

// adjustable is the type that a component's constructor returns if the component can apply
// configuration changes at run time.
type adjustable struct {
	component.Component
	adjustments []reload.Adjustment
}

// build creates the components in a table. If a component reloads the configuration, it receives
// the adjustments of all other components.
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

// Groups returns the Lease names of the groups of components that run on only one of several
// masters.
func Groups() []string {
	return []string{upstreamControllers, upstreamScheduler, ownControllers, imageRegistry}
}
