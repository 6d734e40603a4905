// Package status implements `oc status`, which prints a project's objects, their relationships, and
// problems.
//
// Source: the output of OpenShift 3.11's client. Keep its format, because scripts parse it.
package status

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/slipway-platform/slipway/cli/objects"
)

// Options selects the output.
type Options struct {
	// Namespace is the project, or empty for all projects. An object in a different project is
	// printed with the name of its project.
	Namespace string
	// Title is the project's display name. Server is the server's address.
	Title, Server string
	// Suggest means that the output contains the problems and their remedies instead of only the
	// number of problems.
	Suggest bool
	// Now is the current time.
	Now time.Time
}

// view formats a State.
type view struct {
	Options
	state *State
	now   time.Time
	// shown contains the keys of the objects that have already been printed below another object.
	shown map[string]bool
}

func newView(state *State, options Options) *view {
	return &view{Options: options, state: state, now: options.Now, shown: map[string]bool{}}
}

// Write prints a project's objects as `oc status` does.
func Write(out io.Writer, state *State, options Options) error {
	v := newView(state, options)
	var blocks [][]string
	parts := v.parts()
	for _, service := range state.Services {
		if service.Namespace == "default" && slices.Contains([]string{"kubernetes", "openshift"}, service.Name) && options.Namespace == "" {
			continue
		}
		block := v.serviceLines(service)
		for _, p := range parts {
			if selects(service, p.object.Namespace, p.template.Labels) {
				v.shown[p.key()] = true
				block = append(block, indent(v.partLines(p))...)
			}
		}
		blocks = append(blocks, block)
	}
	for _, p := range parts {
		if !v.shown[p.key()] {
			blocks = append(blocks, v.partLines(p))
		}
	}
	for _, config := range state.BuildConfigs {
		if !v.shown["bc/"+config.Namespace+"/"+config.Name] {
			blocks = append(blocks, v.buildLines(config))
		}
	}
	text := v.heading() + "\n"
	for _, block := range blocks {
		text += "\n" + strings.Join(block, "\n") + "\n"
	}
	text += "\n" + v.ending(len(blocks))
	// Objects can contain any text, such as sequences that control a terminal.
	return printers.WriteEscaped(out, text)
}

func (v *view) heading() string {
	if v.Namespace == "" {
		return "Showing all projects on server " + v.Server
	}
	name := v.Namespace
	if v.Title != "" && v.Title != name {
		name = v.Title + " (" + name + ")"
	}
	return "In project " + name + " on server " + v.Server
}

// ending returns the last lines of the output: the problems, the number of problems, or a hint.
func (v *view) ending(blocks int) string {
	advice := v.advise()
	switch {
	case blocks == 0 && len(advice) == 0:
		return "You have no services, deployment configs, or build configs.\nRun 'oc new-app' to create an application.\n"
	case len(advice) == 0:
		return "View details with 'oc describe <resource>/<name>' or list everything with 'oc get all'.\n"
	case v.Suggest:
		return writeAdvice(advice) + "View details with 'oc describe <resource>/<name>' or list everything with 'oc get all'.\n"
	}
	var counts []string
	for level, name := range levels {
		if n := countOf(advice, level); n > 0 {
			counts = append(counts, plural(n, name))
		}
	}
	return strings.Join(counts, ", ") + " identified, use 'oc status --suggest' to see details.\n"
}

// key returns a part's unique key.
func (p part) key() string { return p.kind + "/" + p.object.Namespace + "/" + p.object.Name }

func (v *view) partLines(p part) []string {
	return append([]string{v.name(p.kind, p.object.Namespace, p.object.Name) + " " + p.verb + " " + strings.Join(p.images, ", ")}, indent(p.below)...)
}

func indent(lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = "  " + line
	}
	return all
}

// name returns KIND/NAME for an object. If the object is not in the project Namespace, name appends
// [PROJECT].
func (v *view) name(kind, namespace, name string) string {
	if namespace == v.Namespace {
		return kind + "/" + name
	}
	return kind + "/" + name + "[" + namespace + "]"
}

// tag returns the name of the image that from refers to. namespace is the default namespace of the
// reference.
func (v *view) tag(namespace string, from corev1.ObjectReference) string {
	switch from.Kind {
	case "ImageStreamTag":
		return strings.TrimSuffix(v.name("istag", cmp.Or(from.Namespace, namespace), tagName(from.Name)), "["+namespace+"]")
	case "ImageStreamImage":
		return strings.TrimSuffix(v.name("isimage", cmp.Or(from.Namespace, namespace), from.Name), "["+namespace+"]")
	}
	return from.Name
}

// serviceLines returns a line for each route to a service. If there are no routes, it returns a
// line with the service's address.
func (v *view) serviceLines(service corev1.Service) (lines []string) {
	name := v.name("svc", service.Namespace, service.Name)
	for _, route := range v.state.Routes {
		backends := append([]routev1.RouteTargetReference{route.Spec.To}, route.Spec.AlternateBackends...)
		if route.Namespace == service.Namespace && slices.ContainsFunc(backends, func(b routev1.RouteTargetReference) bool { return b.Name == service.Name }) {
			lines = append(lines, routeLine(route)+" ("+name+")")
		}
	}
	if len(lines) > 0 {
		return lines
	}
	return []string{name + address(service)}
}

// routeLine returns a line with a route's URL and target port.
func routeLine(route routev1.Route) string {
	admitted := false
	for _, ingress := range route.Status.Ingress {
		for _, condition := range ingress.Conditions {
			if condition.Type == routev1.RouteAdmitted && condition.Status == corev1.ConditionTrue {
				admitted = true
			}
		}
	}
	security := ""
	if tls := route.Spec.TLS; tls != nil {
		switch tls.InsecureEdgeTerminationPolicy {
		case routev1.InsecureEdgeTerminationPolicyRedirect:
			security = " (redirects)"
		case routev1.InsecureEdgeTerminationPolicyAllow:
			security = " (and http)"
		}
		if tls.Termination == routev1.TLSTerminationPassthrough {
			security = " (passthrough)"
		}
	}
	text := objects.RouteURL(&route) + security
	if !admitted && len(route.Status.Ingress) == 0 {
		text = "route/" + route.Name + " for " + text + " is not served by a router yet"
	} else if !admitted {
		text = "route/" + route.Name + " for " + text + " was rejected"
	}
	if route.Spec.Port != nil {
		text += " to pod port " + route.Spec.Port.TargetPort.String()
	}
	return text
}

// address returns a service's cluster-internal address, for the end of a line.
func address(service corev1.Service) string {
	var ports []string
	for _, port := range service.Spec.Ports {
		text := fmt.Sprint(port.Port)
		if service.Spec.Type == corev1.ServiceTypeNodePort {
			text = fmt.Sprint(port.NodePort)
		}
		if target := port.TargetPort.String(); target != "0" && target != text && target != "" {
			text += " -> " + target
		}
		ports = append(ports, text)
	}
	list := strings.Join(ports, ", ")
	switch {
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return " -> " + service.Spec.ExternalName
	case service.Spec.Type == corev1.ServiceTypeNodePort:
		return " (all nodes):" + list
	case service.Spec.ClusterIP == corev1.ClusterIPNone:
		return " (headless):" + list
	case service.Spec.ClusterIP == "":
		return " <initializing>:" + list
	case len(ports) == 0:
		return " - " + service.Spec.ClusterIP
	}
	return " - " + service.Spec.ClusterIP + ":" + list
}
