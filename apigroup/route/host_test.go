package route

import (
	"context"
	"slices"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// hostsWith returns a server's hosts, and the context of a user who is allowed to use the given
// verbs on routes/custom-host.
func hostsWith(verbs ...string) (*hosts, context.Context) {
	decide := func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetResource() == "routes" && a.GetSubresource() == "custom-host" && a.GetNamespace() == "shop" && slices.Contains(verbs, a.GetVerb()) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	}
	return &hosts{suffix: "apps.example.com", authorizer: authorizer.AuthorizerFunc(decide)},
		request.WithUser(context.Background(), &user.DefaultInfo{Name: "joe"})
}

func TestGeneratedHosts(t *testing.T) {
	h, ctx := hostsWith()
	route := valid()
	route.Spec.Host = ""
	setDefaults(route)
	h.prepare(ctx, route, nil)
	if route.Spec.Host != "front-shop.apps.example.com" || route.Annotations[HostGenerated] != "true" {
		t.Errorf("generated host %q, annotations %v", route.Spec.Host, route.Annotations)
	}
	if errs := h.validate(ctx, route, nil); len(errs) > 0 {
		t.Errorf("a generated host requires a permission: %v", errs)
	}
	applied := valid()
	applied.Spec.Host = ""
	setDefaults(applied)
	h.prepare(ctx, applied, route)
	if errs := h.validate(ctx, applied, route); applied.Spec.Host != route.Spec.Host || len(errs) > 0 {
		t.Errorf("after a second apply, the host is %q: %v", applied.Spec.Host, errs)
	}
	below := valid()
	below.Spec.Host, below.Spec.Subdomain = "", "www"
	h.prepare(ctx, below, nil)
	if below.Spec.Host != "" {
		t.Errorf("the router chooses the host of a subdomain, got %q", below.Spec.Host)
	}
}

func TestChoosingHostRequiresCustomHostPermission(t *testing.T) {
	host := func(r *routev1.Route) { r.Spec.Host = "other.example.com" }
	certificate := func(r *routev1.Route) {
		r.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationEdge, Certificate: "c", Key: "k"}
	}
	for _, tt := range []struct {
		name   string
		verbs  []string
		update bool
		change func(*routev1.Route)
		want   string // the rejected field
	}{
		{"new host", nil, false, host, "spec.host"},
		{"new host with create", []string{"create"}, false, host, ""},
		{"new host with update alone", []string{"update"}, false, host, "spec.host"},
		{"new host marked as generated", nil, false, func(r *routev1.Route) { host(r); r.Annotations = map[string]string{HostGenerated: "true"} }, "spec.host"},
		{"new subdomain", nil, false, func(r *routev1.Route) { r.Spec.Host, r.Spec.Subdomain = "", "a" }, "spec.host"},
		{"changed host", []string{"create"}, true, host, "spec.host"},
		{"changed host with update", []string{"update"}, true, host, ""},
		{"certificate on a new route", nil, false, func(r *routev1.Route) { r.Spec.Host = "front-shop.apps.example.com"; certificate(r) }, "spec.tls"},
		{"changed certificate", nil, true, certificate, "spec.tls"},
		{"changed certificate with create", []string{"create"}, true, certificate, ""},
		{"new route for a whole domain", nil, false, func(r *routev1.Route) {
			r.Spec.Host, r.Spec.WildcardPolicy = "front-shop.apps.example.com", routev1.WildcardPolicySubdomain
		}, "spec.host"},
		{"route changed to the wildcard policy Subdomain", []string{"create", "update"}, true, func(r *routev1.Route) { r.Spec.WildcardPolicy = routev1.WildcardPolicySubdomain }, "spec.wildcardPolicy"},
		{"changed path", nil, true, func(r *routev1.Route) { r.Spec.Path = "/a" }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, ctx := hostsWith(tt.verbs...)
			route, old := valid(), (*routev1.Route)(nil)
			if setDefaults(route); tt.update {
				old = route.DeepCopy()
			}
			tt.change(route)
			errs := h.validate(ctx, route, old)
			if tt.want == "" && len(errs) > 0 || tt.want != "" && (len(errs) != 1 || errs[0].Field != tt.want) {
				t.Errorf("errors are %v, want one with %q", errs, tt.want)
			}
		})
	}
}

func TestCommentIsNotACertificate(t *testing.T) {
	const certificate = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----"
	for text, want := range map[string]string{
		"-----BEGIN COMMENT-----\nThis is an empty PEM file\n-----END COMMENT-----\n": "", certificate: certificate, "": "",
	} {
		route := &routev1.Route{Spec: routev1.RouteSpec{Host: "www.example.com", TLS: &routev1.TLSConfig{Termination: routev1.TLSTerminationReencrypt, DestinationCACertificate: text}}}
		(&hosts{}).prepare(t.Context(), route, nil)
		if got := route.Spec.TLS.DestinationCACertificate; got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func TestHostsOfPlatformAreReserved(t *testing.T) {
	h, ctx := hostsWith("create", "update")
	h.reserved = []string{"Master.apps.example.com", "192.0.2.1", "kubernetes.default.svc"}
	with := func(namespace, host, subdomain string, policy routev1.WildcardPolicyType) *routev1.Route {
		route := valid()
		setDefaults(route)
		route.Namespace, route.Spec.Host, route.Spec.Subdomain, route.Spec.WildcardPolicy = namespace, host, subdomain, policy
		return route
	}
	const none, wildcard = routev1.WildcardPolicyNone, routev1.WildcardPolicySubdomain
	for name, tt := range map[string]struct {
		route, old *routev1.Route
		want       bool // true if the host is rejected
	}{
		"host":                      {route: with("shop", "master.apps.example.com", "", none), want: true},
		"address":                   {route: with("shop", "192.0.2.1", "", none), want: true},
		"subdomain":                 {route: with("shop", "", "master", none), want: true},
		"wildcard":                  {route: with("shop", "www.apps.example.com", "", wildcard), want: true},
		"changed host":              {route: with("shop", "192.0.2.1", "", none), old: with("shop", "www.example.com", "", none), want: true},
		"host of an existing route": {route: with("shop", "192.0.2.1", "", none), old: with("shop", "192.0.2.1", "", none)},
		"project of platform":       {route: with("default", "kubernetes.default.svc", "", none)},
		"neighbor":                  {route: with("shop", "www.apps.example.com", "", none)},
		"other subdomain":           {route: with("shop", "", "www", none)},
		"other wildcard":            {route: with("shop", "www.shop.example.com", "", wildcard)},
	} {
		t.Run(name, func(t *testing.T) {
			if errs := h.unreserved(tt.route, tt.old); len(errs) > 0 != tt.want {
				t.Errorf("errors: %v", errs)
			}
		})
	}
	if errs := h.validate(ctx, with("shop", "192.0.2.1", "", none), nil); len(errs) != 1 {
		t.Errorf("a route with a reserved host has errors %v", errs)
	}
}
