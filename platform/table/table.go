// Package table defines the tables that list the components of a process, and creates the
// components in a table.
package table

import (
	"fmt"

	"github.com/slipway-platform/slipway/config/reload"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// Table lists the components of a process. The order of the entries is not significant. H is the
// type whose methods create the components.
type Table[H any] []Entry[H]

// Entry describes one component of a process.
type Entry[H any] struct {
	Name  string
	After []string // components of the process that must be ready first
	Build func(H) (component.Component, error)
	// Group is the name of the leader election group, or empty if each master runs the component.
	// Only one master at a time runs the components in a group.
	Group string
}

// Adjustable is the type that a component's constructor returns if the component can apply
// configuration changes at run time.
type Adjustable struct {
	component.Component
	Adjustments []reload.Adjustment
}

// Build creates the components in a table. gate returns the gate that starts and stops an entry's
// component, or nil if the component always runs. If gate is nil, all components always run. If a
// component reloads the configuration, it receives the adjustments of all other components.
func (t Table[H]) Build(h H, gate func(name, group string) (component.Gate, error)) ([]component.Entry, error) {
	var entries []component.Entry
	var adjustments []reload.Adjustment
	for _, line := range t {
		c, err := line.Build(h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line.Name, err)
		}
		if a, ok := c.(Adjustable); ok {
			c, adjustments = a.Component, append(adjustments, a.Adjustments...)
		}
		next := component.Entry{Component: c, After: line.After}
		if gate != nil {
			if next.Gate, err = gate(line.Name, line.Group); err != nil {
				return nil, err
			}
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

// Components returns the components in a table, all marked as not running.
func (t Table[H]) Components() []supervisor.ComponentStatus {
	var components []supervisor.ComponentStatus
	for _, e := range t {
		components = append(components, supervisor.ComponentStatus{Name: e.Name, After: e.After, State: component.Stopped})
	}
	return components
}
