package route

import (
	"fmt"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/apiserver"
)

// columns returns the columns of `oc get routes` in OpenShift 3.
func columns() []apiserver.Column[*routev1.Route] {
	return []apiserver.Column[*routev1.Route]{
		{Name: "Host/Port", Description: "Host name of requests, or the reason why it is rejected", Value: host},
		{Name: "Path", Description: "Path prefix of requests", Value: func(route *routev1.Route) any { return route.Spec.Path }},
		{Name: "Services", Description: "Services that get the traffic, with their shares", Value: services},
		{Name: "Port", Description: "Port of the service", Value: port},
		{Name: "Termination", Description: "Where TLS ends, and what happens to plain HTTP", Value: termination},
		{Name: "Wildcard", Description: "Whether names below the host are served too", Value: func(route *routev1.Route) any {
			return string(route.Spec.WildcardPolicy)
		}},
	}
}

// host returns the host that routers have admitted. If no router has admitted the route, it returns
// the requested host, or the reason why the host was rejected.
func host(route *routev1.Route) any {
	ingresses := route.Status.Ingress
	for i, ingress := range ingresses {
		admitted := condition(&ingresses[i])
		switch {
		case admitted == nil:
		case admitted.Status == corev1.ConditionTrue && len(ingresses) == 1:
			return ingress.Host
		case admitted.Status == corev1.ConditionTrue:
			return fmt.Sprintf("%s ... %d more", ingress.Host, len(ingresses)-1)
		case admitted.Status == corev1.ConditionFalse:
			return admitted.Reason
		}
	}
	return route.Spec.Host
}

func condition(ingress *routev1.RouteIngress) *routev1.RouteIngressCondition {
	for i := range ingress.Conditions {
		if ingress.Conditions[i].Type == routev1.RouteAdmitted {
			return &ingress.Conditions[i]
		}
	}
	return nil
}

// services returns the backends. If a route has several backends, services adds each backend's
// share.
func services(route *routev1.Route) any {
	targets := append([]routev1.RouteTargetReference{route.Spec.To}, route.Spec.AlternateBackends...)
	if len(targets) == 1 {
		return targets[0].Name
	}
	total := int32(0)
	for _, target := range targets {
		total += *target.Weight
	}
	var names []string
	for _, target := range targets {
		share := int32(0)
		if total > 0 {
			share = *target.Weight * 100 / total
		}
		names = append(names, fmt.Sprintf("%s(%d%%)", target.Name, share))
	}
	return strings.Join(names, ",")
}

func port(route *routev1.Route) any {
	if route.Spec.Port == nil {
		return "<all>"
	}
	return route.Spec.Port.TargetPort.String()
}

func termination(route *routev1.Route) any {
	tls := route.Spec.TLS
	if tls == nil {
		return ""
	}
	if tls.InsecureEdgeTerminationPolicy == "" {
		return string(tls.Termination)
	}
	return fmt.Sprintf("%s/%s", tls.Termination, tls.InsecureEdgeTerminationPolicy)
}
