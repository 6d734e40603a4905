package router

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/certificate"
	"github.com/slipway-platform/slipway/router/claim"
	"github.com/slipway-platform/slipway/router/model"
)

// ExtendedValidationFailed is the reason of routes with invalid certificates.
const ExtendedValidationFailed = "ExtendedValidationFailed"

// routesShare limits how much of the time is spent on decisions about all routes: at most
// 1/routesShare of it if routes change constantly. Cheap changes of endpoints must not wait for
// them.
const routesShare = 4

// decide writes a configuration after each change until ctx ends. It calls done after each attempt.
func (s *session) decide(ctx context.Context, done func()) error {
	if !s.seen.waitFilled(ctx) {
		return nil
	}
	s.seen.all()
	s.follow(ctx, done)
	return nil
}

// decideRetryDelay is the delay until a failed configuration is retried.
const decideRetryDelay = time.Second

// follow writes a configuration after each change until ctx ends, and calls done after each
// attempt.
func (s *session) follow(ctx context.Context, done func()) {
	var routesFrom time.Time
	for {
		changed, ok := s.seen.next(ctx, routesFrom)
		if !ok {
			return
		}
		start := time.Now()
		err := s.decideOnce(changed)
		switch {
		case err != nil:
			slog.Error("cannot write router configuration; the previous one stays in effect", "error", err)
			routesFrom = time.Now().Add(decideRetryDelay)
		case changed.routes:
			routesFrom = time.Now().Add((routesShare - 1) * time.Since(start))
		}
		done()
	}
}

// decideOnce writes a configuration of the current state. changed says which inputs it reads again.
func (s *session) decideOnce(changed changes) error {
	touched := []model.ServiceAliasConfigKey{}
	var routes []*routev1.Route
	var verdicts []claim.Verdict
	if changed.routes {
		routes = s.routes()
		verdicts = s.decideAll(routes)
		var admitted []*routev1.Route
		for i := range verdicts {
			if verdicts[i].Admitted() {
				admitted = append(admitted, verdicts[i].Route)
			}
		}
		touched = append(touched, s.builder.Routes(admitted)...)
	}
	touched = append(touched, s.builder.Services(slices.Collect(maps.Keys(changed.services)))...)
	state := s.builder.State()
	if namespace := s.Settings.Text("ROUTER_SERVICE_NAMESPACE"); namespace != "" {
		state.PeerEndpoints = s.builder.Source.Endpoints(namespace, canonical(s.Settings))
	}
	if pem := s.fallback.Load(); pem != nil {
		s.writer.DefaultCertificate = *pem
	}
	config, err := s.writer.Write(state, touched, true)
	if err != nil {
		s.seen.all()
		return err
	}
	s.mu.Lock()
	number := s.engine.Set(config)
	if changed.routes {
		s.configured = routes
	}
	s.mu.Unlock()
	s.first.CompareAndSwap(0, int64(number))
	if changed.routes {
		s.status.set(verdicts)
	}
	return nil
}

// decideAll decides about all routes.
func (s *session) decideAll(routes []*routev1.Route) []claim.Verdict {
	verdicts := claim.Judge(routes, s.policy())
	results := make(map[*routev1.Route]error, len(s.checked))
	for i := range verdicts {
		if verdicts[i].Admitted() {
			s.validate(&verdicts[i], results)
		}
	}
	s.checked = results
	return verdicts
}

func (s *session) policy() claim.Policy {
	return claim.Policy{
		Wildcards:    s.Settings.On("ROUTER_ALLOW_WILDCARD_ROUTES"),
		AnyNamespace: s.Settings.On("ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK"),
		Allowed:      s.Settings.List("ROUTER_ALLOWED_DOMAINS"),
		Denied:       s.Settings.List("ROUTER_DENIED_DOMAINS"),
	}
}

// routes returns the routes of the router's shard with the hosts that it assigns. An unchanged
// route is the same object as before.
func (s *session) routes() (routes []*routev1.Route) {
	hosts := make(map[*routev1.Route]*routev1.Route, len(s.hosts))
	for _, route := range s.seen.shard() {
		if host := s.host(route); host != route.Spec.Host {
			assigned := s.hosts[route]
			if assigned == nil {
				assigned = route.DeepCopy()
				assigned.Spec.Host = host
			}
			hosts[route] = assigned
			route = assigned
		}
		routes = append(routes, route)
	}
	s.hosts = hosts
	return routes
}

// host returns the host that this router serves for a route.
func (s *session) host(route *routev1.Route) string {
	template := s.Settings.Text("ROUTER_SUBDOMAIN")
	generated := ""
	if template != "" {
		generated = strings.NewReplacer("${name}", route.Name, "${namespace}", route.Namespace).Replace(template)
	}
	switch {
	case template != "" && s.Settings.On("ROUTER_OVERRIDE_HOSTNAME"):
		return generated
	case route.Spec.Host != "":
		return route.Spec.Host
	}
	if domain := cmp.Or(s.Settings.Text("ROUTER_DOMAIN"), s.Domain); route.Spec.Subdomain != "" && domain != "" {
		return route.Spec.Subdomain + "." + domain
	}
	return generated
}

// validate rejects a route with invalid certificates. If EXTENDED_VALIDATION is off, it replaces
// them with the router's default certificate.
func (s *session) validate(verdict *claim.Verdict, results map[*routev1.Route]error) {
	route := verdict.Route
	s.mu.Lock()
	rejection := s.rejectedRoutes[key(route)]
	s.mu.Unlock()
	if sameRequest(rejection, route) {
		verdict.Reason, verdict.Message = ExtendedValidationFailed, "HAProxy rejects the route's certificate or settings; for the reason, see the router's log"
		return
	}
	if route.Spec.TLS == nil {
		return
	}
	err, ok := s.checked[route]
	if !ok {
		err = certificate.Check(route.Spec.TLS)
	}
	results[route] = err
	switch {
	case err == nil:
	case s.Settings.On("EXTENDED_VALIDATION"):
		verdict.Reason, verdict.Message = ExtendedValidationFailed, err.Error()
	default:
		verdict.Route = route.DeepCopy()
		tls := verdict.Route.Spec.TLS
		tls.Certificate, tls.Key, tls.CACertificate, tls.DestinationCACertificate = "", "", "", ""
	}
}

func key(route *routev1.Route) model.ServiceAliasConfigKey {
	return model.ServiceAliasConfigKey(route.Namespace + ":" + route.Name)
}
