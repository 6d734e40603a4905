package objects

import (
	"cmp"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
)

// RouteURL returns a route's URL. It contains the host that a router has admitted or, if no router
// has admitted a host, the requested host.
func RouteURL(route *routev1.Route) string {
	host, scheme := route.Spec.Host, "http"
	for _, ingress := range route.Status.Ingress {
		for _, condition := range ingress.Conditions {
			if condition.Type == routev1.RouteAdmitted && condition.Status == corev1.ConditionTrue {
				host = cmp.Or(ingress.Host, host)
			}
		}
	}
	if route.Spec.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + host + route.Spec.Path
}
