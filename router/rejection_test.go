package router

import (
	"errors"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/router/claim"
	"github.com/slipway-platform/slipway/router/model"
)

// TestRejectedRouteIsExcludedUntilChanged checks that a route that HAProxy has rejected stays
// excluded until a user changes the route. Changes to the route's status are ignored.
func TestRejectedRouteIsExcludedUntilChanged(t *testing.T) {
	variables := read(t, map[string]string{"ROUTER_SUBDOMAIN": "${name}.example.com"})
	d, err := newDecisions(&rest.Config{}, variables, "")
	if err != nil {
		t.Fatal(err)
	}
	view := d.seen
	count := 0
	s := &session{Router: &Router{Settings: variables, Report: func(string) {}}, decisions: d, observed: newMetrics(), again: func() { count++ }}
	s.rejection = s.rejectionOf
	route := &routev1.Route{} // the router sets the route's host
	route.Namespace, route.Name, route.ResourceVersion = "shop", "front", "1"
	if err := view.routes.GetStore().Add(route); err != nil {
		t.Fatal(err)
	}
	admitted := func(route *routev1.Route) bool {
		verdict := claim.Verdict{Route: route.DeepCopy()}
		verdict.Route.Spec.Host = s.host(route)
		s.validate(&verdict, map[*routev1.Route]error{})
		return verdict.Admitted()
	}
	s.configured = s.routes()
	s.rejected(nil, errors.New("out of memory"))
	if count != 0 || !admitted(route) {
		t.Error("a rejection for another reason excludes a route")
	}
	s.rejected([]model.ServiceAliasConfigKey{"shop:front"}, errors.New("unknown keyword"))
	reportedRoute := route.DeepCopy()
	reportedRoute.ResourceVersion, reportedRoute.Status.Ingress = "2", []routev1.RouteIngress{{Host: "www.example.com"}}
	if err := view.routes.GetStore().Update(reportedRoute); err != nil {
		t.Fatal(err)
	}
	s.configured = s.routes()
	s.rejected([]model.ServiceAliasConfigKey{"shop:other"}, errors.New("unknown keyword"))
	if count != 2 || admitted(reportedRoute) {
		t.Errorf("the configuration was written %d times, and the route is admitted: %t", count, admitted(reportedRoute))
	}
	for _, change := range []func(*routev1.Route){
		func(r *routev1.Route) { r.Spec.Path = "/other" }, func(r *routev1.Route) { r.Annotations = map[string]string{"a": "b"} },
	} {
		changed := reportedRoute.DeepCopy()
		change(changed)
		if !admitted(changed) {
			t.Errorf("the changed route %+v is still excluded", changed)
		}
	}
}

func TestRejectionReasonIsShort(t *testing.T) {
	long := "run HAProxy: exit status 1: [NOTICE] (1) : path\n[ALERT] (1) : config : unknown keyword 'x'\n[ALERT] (1) : more"
	if got := brief(long); got != "(1) : config : unknown keyword 'x'" {
		t.Errorf("the reason is %q", got)
	}
	if got := brief(strings.Repeat("é", 1000)); len(got) > maxReasonBytes {
		t.Errorf("the reason has %d bytes", len(got))
	}
}
