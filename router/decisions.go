package router

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/router/certificate"
	"github.com/slipway-platform/slipway/router/claim"
	"github.com/slipway-platform/slipway/router/environment"
	"github.com/slipway-platform/slipway/router/model"
)

// ExtendedValidationFailed is the rejection reason for routes with invalid certificates.
const ExtendedValidationFailed = "ExtendedValidationFailed"

// decisions decides which of the cluster's routes a router serves, and stores the state of the
// admitted routes. It is independent of the program that serves the routes, which is HAProxy or an
// F5 appliance.
type decisions struct {
	settings environment.Settings
	domain   string // domain for routes with spec.subdomain if ROUTER_DOMAIN is not set
	seen     *view
	status   *statusWriter
	// rejection, if set, returns the reason why the program rejects a route, or "".
	rejection func(*routev1.Route) string

	builder model.Builder
	hosts   map[*routev1.Route]*routev1.Route // copies with the router's hosts, by original route
	checked map[*routev1.Route]error          // certificate errors, by route
}

func newDecisions(config *rest.Config, s environment.Settings, domain string) (*decisions, error) {
	view, err := newView(config, s)
	if err != nil {
		return nil, err
	}
	status := &statusWriter{client: view.routeClient, settings: s, outdated: view.all, writes: map[string]*writing{}}
	view.isOwnStatus = status.wrote
	return &decisions{
		settings: s, domain: domain, seen: view, builder: model.Builder{Source: view.source()}, status: status,
		hosts: map[*routev1.Route]*routev1.Route{}, checked: map[*routev1.Route]error{},
	}, nil
}

// update applies changes to the builder's state. It returns the routes whose state changed, all
// routes of the router, and the decisions for these routes. routes and verdicts are nil if no route
// has changed.
func (d *decisions) update(changed changes) (touched []model.ServiceAliasConfigKey, routes []*routev1.Route, verdicts []claim.Verdict) {
	touched = []model.ServiceAliasConfigKey{}
	if changed.routes {
		routes = d.routes()
		verdicts = d.decideAll(routes)
		var admitted []*routev1.Route
		for i := range verdicts {
			if verdicts[i].Admitted() {
				admitted = append(admitted, verdicts[i].Route)
			}
		}
		touched = append(touched, d.builder.Routes(admitted)...)
	}
	touched = append(touched, d.builder.Services(slices.Collect(maps.Keys(changed.services)))...)
	return touched, routes, verdicts
}

// decideAll decides for all routes whether the router serves them.
func (d *decisions) decideAll(routes []*routev1.Route) []claim.Verdict {
	verdicts := claim.Judge(routes, d.policy())
	results := make(map[*routev1.Route]error, len(d.checked))
	for i := range verdicts {
		if verdicts[i].Admitted() {
			d.validate(&verdicts[i], results)
		}
	}
	d.checked = results
	return verdicts
}

func (d *decisions) policy() claim.Policy {
	return claim.Policy{
		Wildcards:    d.settings.On("ROUTER_ALLOW_WILDCARD_ROUTES"),
		AnyNamespace: d.settings.On("ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK"),
		Allowed:      d.settings.List("ROUTER_ALLOWED_DOMAINS"),
		Denied:       d.settings.List("ROUTER_DENIED_DOMAINS"),
	}
}

// routes returns the routes in the router's shard, with the hosts that the router assigns. For an
// unchanged route, it returns the same object as before.
func (d *decisions) routes() (routes []*routev1.Route) {
	hosts := make(map[*routev1.Route]*routev1.Route, len(d.hosts))
	for _, route := range d.seen.shard() {
		if host := d.host(route); host != route.Spec.Host {
			assigned := d.hosts[route]
			if assigned == nil {
				assigned = route.DeepCopy()
				assigned.Spec.Host = host
			}
			hosts[route] = assigned
			route = assigned
		}
		routes = append(routes, route)
	}
	d.hosts = hosts
	return routes
}

// host returns the host that this router serves for a route.
func (d *decisions) host(route *routev1.Route) string {
	template := d.settings.Text("ROUTER_SUBDOMAIN")
	generated := ""
	if template != "" {
		generated = strings.NewReplacer("${name}", route.Name, "${namespace}", route.Namespace).Replace(template)
	}
	switch {
	case template != "" && d.settings.On("ROUTER_OVERRIDE_HOSTNAME"):
		return generated
	case route.Spec.Host != "":
		return route.Spec.Host
	}
	if domain := cmp.Or(d.settings.Text("ROUTER_DOMAIN"), d.domain); route.Spec.Subdomain != "" && domain != "" {
		return route.Spec.Subdomain + "." + domain
	}
	return generated
}

// validate rejects routes with invalid certificates. If EXTENDED_VALIDATION is off, it replaces
// invalid certificates with the router's default certificate instead.
func (d *decisions) validate(verdict *claim.Verdict, results map[*routev1.Route]error) {
	route := verdict.Route
	if d.rejection != nil {
		if message := d.rejection(route); message != "" {
			verdict.Reason, verdict.Message = ExtendedValidationFailed, message
			return
		}
	}
	if route.Spec.TLS == nil {
		return
	}
	err, ok := d.checked[route]
	if !ok {
		err = certificate.Check(route.Spec.TLS)
	}
	results[route] = err
	switch {
	case err == nil:
	case d.settings.On("EXTENDED_VALIDATION"):
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
