package objects

import (
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestRouteURLComesFromAdmittingRouter(t *testing.T) {
	ingress := func(status corev1.ConditionStatus) routev1.RouteStatus {
		return routev1.RouteStatus{Ingress: []routev1.RouteIngress{{
			Host: "admitted.example.com", Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: status}},
		}}}
	}
	for want, route := range map[string]routev1.Route{
		"http://www.example.com/shop": {Spec: routev1.RouteSpec{Host: "www.example.com", Path: "/shop"}},
		"https://www.example.com":     {Spec: routev1.RouteSpec{Host: "www.example.com", TLS: &routev1.TLSConfig{}}, Status: ingress(corev1.ConditionFalse)},
		"http://admitted.example.com": {Spec: routev1.RouteSpec{Host: "www.example.com"}, Status: ingress(corev1.ConditionTrue)},
	} {
		if got := RouteURL(&route); got != want {
			t.Errorf("URL %q, want %q", got, want)
		}
	}
}
