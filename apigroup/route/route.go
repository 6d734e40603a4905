// Package route serves the API group route.openshift.io. A Route exposes a service under a host
// name, and optionally a path, through the cluster's router.
//
// Source: OpenShift Container Platform 3.9 Architecture, section on routes; the wire type is
// github.com/openshift/api/route/v1.Route.
package route

import (
	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/apiserver"
)

// Feature returns the route.openshift.io API group, with the admission plugin for Ingress objects,
// so that it can be registered with the API server. suffix is the parent domain of generated hosts.
// reserved lists the hosts of the platform's own servers: only routes in the platform's namespaces
// can use them.
func Feature(suffix string, reserved []string) apiserver.Feature {
	return apiserver.Feature{Groups: []apiserver.Group{{
		GroupVersion: routev1.GroupVersion,
		Install:      routev1.Install,
		Legacy:       routev1.DeprecatedInstallWithoutGroup,
		Resources:    []apiserver.Served{routes(&hosts{suffix: suffix, reserved: reserved})},
	}}, Admission: []apiserver.Admission{{Name: IngressAdmission, New: newIngressAdmission}}}
}

func routes(h *hosts) apiserver.Served {
	return apiserver.Resource[*routev1.Route]{
		Plural: "routes", Categories: []string{"all"}, Namespaced: true, Status: true,
		Default: setDefaults, Prepare: h.prepare, Validate: h.validate, ValidateStatus: validateStatus,
		Adjust: h.adjust,
		Fields: map[string]func(*routev1.Route) string{
			"spec.host":    func(route *routev1.Route) string { return route.Spec.Host },
			"spec.path":    func(route *routev1.Route) string { return route.Spec.Path },
			"spec.to.name": func(route *routev1.Route) string { return route.Spec.To.Name },
		},
		Columns: columns(),
	}
}

// setDefaults sets the defaults of OpenShift 3: the target is a service with weight 100, and the
// wildcard policy is None.
func setDefaults(route *routev1.Route) {
	spec := &route.Spec
	if spec.WildcardPolicy == "" {
		spec.WildcardPolicy = routev1.WildcardPolicyNone
	}
	setTargetDefaults(&spec.To)
	for i := range spec.AlternateBackends {
		setTargetDefaults(&spec.AlternateBackends[i])
	}
	if tls := spec.TLS; tls != nil && tls.Termination == "" && tls.DestinationCACertificate == "" {
		tls.Termination = routev1.TLSTerminationEdge
	}
	for i := range route.Status.Ingress {
		if ingress := &route.Status.Ingress[i]; ingress.WildcardPolicy == "" {
			ingress.WildcardPolicy = routev1.WildcardPolicyNone
		}
	}
}

// defaultWeight is the weight of a backend that does not set a weight.
const defaultWeight = 100

func setTargetDefaults(target *routev1.RouteTargetReference) {
	if target.Kind == "" {
		target.Kind = "Service"
	}
	if target.Weight == nil {
		weight := int32(defaultWeight)
		target.Weight = &weight
	}
}
