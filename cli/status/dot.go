package status

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
)

// WriteDot prints a project as a directed graph in the DOT format, for `oc status -o dot`.
func WriteDot(out io.Writer, state *State, options Options) error {
	v := newView(state, options)
	var nodes, edges []string
	node := func(name string) { nodes = append(nodes, fmt.Sprintf("  %q;", name)) }
	edge := func(from, to, label string) {
		edges = append(edges, fmt.Sprintf("  %q -> %q [label=%q];", from, to, label))
	}
	for _, route := range state.Routes {
		name := v.name("route", route.Namespace, route.Name)
		node(name)
		for _, backend := range append([]routev1.RouteTargetReference{route.Spec.To}, route.Spec.AlternateBackends...) {
			edge(name, v.name("svc", route.Namespace, backend.Name), "ExposedThroughRoute")
		}
	}
	parts := v.parts()
	for _, service := range state.Services {
		name := v.name("svc", service.Namespace, service.Name)
		node(name)
		for _, p := range parts {
			if selects(service, p.object.Namespace, p.template.Labels) {
				edge(name, v.name(p.kind, p.object.Namespace, p.object.Name), "Exposes")
			}
		}
	}
	for _, p := range parts {
		node(v.name(p.kind, p.object.Namespace, p.object.Name))
	}
	for _, config := range state.Configs {
		for _, trigger := range config.Spec.Triggers {
			if trigger.ImageChangeParams != nil {
				edge(v.tag(config.Namespace, trigger.ImageChangeParams.From), v.name("dc", config.Namespace, config.Name), "TriggersDeployment")
			}
		}
		for _, deployment := range state.deploymentsOf(config) {
			node(v.name("rc", deployment.Namespace, deployment.Name))
			edge(v.name("dc", config.Namespace, config.Name), v.name("rc", deployment.Namespace, deployment.Name), "ManagedByController")
		}
	}
	for _, config := range state.BuildConfigs {
		name := v.name("bc", config.Namespace, config.Name)
		node(name)
		if to := config.Spec.Output.To; to != nil {
			edge(name, v.tag(config.Namespace, *to), "BuildOutput")
		}
	}
	slices.Sort(nodes)
	slices.Sort(edges)
	_, err := fmt.Fprintf(out, "digraph %q {\n%s\n}\n", cmp.Or(options.Namespace, "all projects"),
		strings.Join(slices.Concat(slices.Compact(nodes), slices.Compact(edges)), "\n"))
	return err
}
