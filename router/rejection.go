package router

import (
	"log/slog"
	"maps"
	"reflect"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/model"
)

// rejected excludes the routes that cause HAProxy to reject a configuration, so that HAProxy can
// serve the other routes.
func (s *session) rejected(routes []model.ServiceAliasConfigKey, reason error) {
	s.observed.failure.Set(1)
	s.Report("HAProxy serves an earlier configuration: " + brief(reason.Error()))
	if len(routes) == 0 {
		return
	}
	blamed := map[model.ServiceAliasConfigKey]bool{}
	for _, route := range routes {
		blamed[route] = true
	}
	s.mu.Lock()
	before := s.rejectedRoutes
	s.rejectedRoutes = map[model.ServiceAliasConfigKey]*routev1.Route{}
	for _, route := range s.configured {
		switch name := key(route); {
		case blamed[name]:
			s.rejectedRoutes[name] = route
			slog.Warn("HAProxy rejects a route", "route", route.Namespace+"/"+route.Name)
		case sameRequest(before[name], route):
			s.rejectedRoutes[name] = route
		}
	}
	s.mu.Unlock()
	s.again()
}

// rejectionOf returns the rejection message for a route that HAProxy has rejected and that has not
// changed since. For other routes, it returns "".
func (s *session) rejectionOf(route *routev1.Route) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !sameRequest(s.rejectedRoutes[key(route)], route) {
		return ""
	}
	return "HAProxy rejects the route's certificate or settings; for the reason, see the router's log"
}

// sameRequest reports whether a route has the same spec and annotations as before. It ignores the
// status. before can be nil.
func sameRequest(before, route *routev1.Route) bool {
	return before != nil && reflect.DeepEqual(before.Spec, route.Spec) && maps.Equal(before.Annotations, route.Annotations)
}

// maxReasonBytes is the maximum length of the reason in the status, in bytes. The log contains the
// complete reason.
const maxReasonBytes = 400

// brief returns the line that contains the error in HAProxy's output. If there is no such line, it
// shortens the output.
func brief(reason string) string {
	for line := range strings.Lines(reason) {
		if _, alert, ok := strings.Cut(line, "[ALERT]"); ok {
			reason = strings.TrimSpace(alert)
			break
		}
	}
	return strings.ToValidUTF8(reason[:min(len(reason), maxReasonBytes)], "")
}
