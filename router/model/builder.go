package model

import (
	"maps"
	"reflect"
	"slices"

	routev1 "github.com/openshift/api/route/v1"
)

// Builder incrementally updates a router's state. The cost of an update is proportional to the
// number of changes.
type Builder struct {
	// Source provides services.
	Source Source

	state  State
	routes map[ServiceAliasConfigKey]*routev1.Route
}

// Build returns a router's state for its admitted routes.
func Build(routes []*routev1.Route, source Source) *State {
	b := Builder{Source: source}
	b.Routes(routes)
	return b.State()
}

// State returns the current state. It is valid until the next change.
func (b *Builder) State() *State {
	if b.state.Aliases == nil {
		b.state.Aliases, b.state.ServiceUnits = map[ServiceAliasConfigKey]*ServiceAliasConfig{}, map[ServiceUnitKey]ServiceUnit{}
		b.routes = map[ServiceAliasConfigKey]*routev1.Route{}
	}
	return &b.state
}

// Routes updates the state to match the admitted routes. It returns the added, removed and changed
// routes. A route is considered unchanged if it is the same object as before.
func (b *Builder) Routes(admitted []*routev1.Route) (changed []ServiceAliasConfigKey) {
	state := b.State()
	index, counts := make(map[ServiceAliasConfigKey]bool, len(admitted)), map[string]int{}
	for _, route := range admitted {
		counts[route.Namespace]++
	}
	for _, route := range admitted {
		key := ServiceAliasConfigKey(route.Namespace + ":" + route.Name)
		index[key] = true
		before, share := state.Aliases[key], roundUp(counts[route.Namespace])
		if b.routes[key] == route && before.Share == share {
			continue
		}
		b.routes[key] = route
		config := alias(route)
		config.Share = share
		if before != nil {
			if before.Share == share && before.SameApartFromEndpoints(config) {
				continue
			}
			b.leave(key)
		}
		b.enter(key, config)
		changed = append(changed, key)
	}
	if len(index) == len(b.routes) {
		return changed
	}
	for key := range b.routes {
		if !index[key] {
			b.leave(key)
			delete(b.routes, key)
			changed = append(changed, key)
		}
	}
	return changed
}

// Services reads the given services and their endpoints again. It returns the routes whose
// endpoints have changed.
func (b *Builder) Services(keys []ServiceUnitKey) (changed []ServiceAliasConfigKey) {
	state, touched := b.State(), map[ServiceAliasConfigKey]bool{}
	for _, key := range keys {
		before, ok := state.ServiceUnits[key]
		if !ok {
			continue
		}
		unit := b.Source.unit(key)
		if slices.Equal(unit.EndpointTable, before.EndpointTable) {
			continue
		}
		unit.ServiceAliasAssociations = before.ServiceAliasAssociations
		state.ServiceUnits[key] = unit
		for alias := range unit.ServiceAliasAssociations {
			touched[alias] = true
		}
	}
	for key := range touched {
		config := *state.Aliases[key]
		state.weigh(&config)
		state.Aliases[key] = &config
	}
	return slices.Collect(maps.Keys(touched))
}

// enter adds a route and its services to the state.
func (b *Builder) enter(key ServiceAliasConfigKey, config *ServiceAliasConfig) {
	for unit := range config.ServiceUnits {
		service, ok := b.state.ServiceUnits[unit]
		if !ok {
			service = b.Source.unit(unit)
			b.state.ServiceUnits[unit] = service
		}
		service.ServiceAliasAssociations[key] = true
	}
	b.state.weigh(config)
	b.state.Aliases[key] = config
}

// leave removes a route and the services that no other route uses.
func (b *Builder) leave(key ServiceAliasConfigKey) {
	for unit := range b.state.Aliases[key].ServiceUnits {
		associations := b.state.ServiceUnits[unit].ServiceAliasAssociations
		if delete(associations, key); len(associations) == 0 {
			delete(b.state.ServiceUnits, unit)
		}
	}
	delete(b.state.Aliases, key)
}

// SameApartFromEndpoints reports whether two routes differ only in fields that depend on service
// endpoints or on other routes.
func (c *ServiceAliasConfig) SameApartFromEndpoints(other *ServiceAliasConfig) bool {
	a, b := *c, *other
	for _, bare := range []*ServiceAliasConfig{&a, &b} {
		bare.ServiceUnitNames, bare.ActiveServiceUnits, bare.ActiveEndpoints, bare.Share = nil, 0, 0, 0
	}
	return reflect.DeepEqual(&a, &b)
}
