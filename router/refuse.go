package router

import (
	"log/slog"
	"maps"
	"reflect"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/model"
)

// rejected sets aside the routes for which HAProxy does not take a configuration, so that the others are served.
func (s *session) rejected(routes []model.ServiceAliasConfigKey, reason error) {
	s.observed.failure.Set(1)
	s.Trouble("HAProxy serves a former configuration: " + brief(reason.Error()))
	if len(routes) == 0 {
		return
	}
	blamed := map[model.ServiceAliasConfigKey]bool{}
	for _, route := range routes {
		blamed[route] = true
	}
	s.mu.Lock()
	before := s.refused
	s.refused = map[model.ServiceAliasConfigKey]*routev1.Route{}
	for _, route := range s.asked {
		switch name := key(route); {
		case blamed[name]:
			s.refused[name] = route
			slog.Warn("a route is set aside, since HAProxy does not accept it", "namespace", route.Namespace, "route", route.Name)
		case sameWish(before[name], route):
			s.refused[name] = route
		}
	}
	s.mu.Unlock()
	s.again()
}

// sameWish says whether a route asks for the same as it did before, whatever became of its status. Before may be nil.
func sameWish(before, route *routev1.Route) bool {
	return before != nil && reflect.DeepEqual(before.Spec, route.Spec) && maps.Equal(before.Annotations, route.Annotations)
}

// longestReason is how much is told of a reason, in bytes; the log has all of it.
const longestReason = 400

// brief is the line of HAProxy's output that says what is wrong, if there is one.
func brief(reason string) string {
	for line := range strings.Lines(reason) {
		if _, alert, found := strings.Cut(line, "[ALERT]"); found {
			reason = strings.TrimSpace(alert)
			break
		}
	}
	return strings.ToValidUTF8(reason[:min(len(reason), longestReason)], "")
}
