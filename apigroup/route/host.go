package route

import (
	"context"
	"fmt"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/slipway-platform/slipway/apiserver"
)

// HostGenerated is the annotation of routes whose host the server generated.
const HostGenerated = "openshift.io/host.generated"

// hosts generates the hosts of routes, and checks the permission to choose a host.
type hosts struct {
	suffix     string // the domain of generated hosts
	reserved   []string
	authorizer authorizer.Authorizer
}

func (h *hosts) adjust(deps apiserver.Deps, _ *registry.Store) { h.authorizer = deps.Authorizer }

// prepare generates the host <name>-<namespace>.<suffix> for a route without a host. An update
// without a host keeps the old host, so that the manifest of a route can be applied again.
func (h *hosts) prepare(_ context.Context, route, old *routev1.Route) {
	spec := &route.Spec
	if tls := spec.TLS; tls != nil && strings.HasPrefix(strings.TrimSpace(tls.DestinationCACertificate), commentPEM) {
		tls.DestinationCACertificate = ""
	}
	switch {
	case spec.Host != "":
	case old != nil:
		spec.Host = old.Spec.Host
	case spec.Subdomain == "" && spec.WildcardPolicy != routev1.WildcardPolicySubdomain:
		spec.Host = h.generated(route)
		if route.Annotations == nil {
			route.Annotations = map[string]string{}
		}
		route.Annotations[HostGenerated] = "true"
	}
}

// commentPEM is the start of the text that the /oapi/v1 API of OpenShift 3 returned if
// destinationCACertificate was missing. Routes that were exported from it contain this text.
const commentPEM = "-----BEGIN COMMENT-----"

func (h *hosts) generated(route *routev1.Route) string {
	return fmt.Sprintf("%s-%s.%s", route.Name, route.Namespace, h.suffix)
}

// validate validates a route, and checks that the user is permitted to set its values.
func (h *hosts) validate(ctx context.Context, route, old *routev1.Route) field.ErrorList {
	return slices.Concat(validate(ctx, route, old), h.permitted(ctx, route, old), h.unreserved(route, old))
}

// unreserved checks that a route of a tenant does not have the host of the API server, the console
// or the registry. Browsers send cookies to all ports of a host, so the tenant would get the
// sessions of users who open the route.
func (h *hosts) unreserved(route, old *routev1.Route) field.ErrorList {
	if isPlatform(route.Namespace) || old != nil && old.Spec.Host == route.Spec.Host && old.Spec.Subdomain == route.Spec.Subdomain {
		return nil
	}
	at, host := field.NewPath("spec", "host"), route.Spec.Host
	if host == "" && route.Spec.Subdomain != "" {
		at, host = field.NewPath("spec", "subdomain"), route.Spec.Subdomain+"."+h.suffix
	}
	wildcard := route.Spec.WildcardPolicy == routev1.WildcardPolicySubdomain
	taken := slices.ContainsFunc(h.reserved, func(name string) bool {
		name = strings.ToLower(name)
		_, domain, _ := strings.Cut(name, ".")
		_, within, hasDomain := strings.Cut(host, ".")
		return host != "" && name == host || wildcard && hasDomain && domain == within
	})
	if !taken {
		return nil
	}
	return field.ErrorList{field.Forbidden(at, "the host belongs to the API server, the console or the registry of the cluster; "+
		"choose another host, or create the route in a project of the platform, such as default")}
}

// isPlatform reports whether a namespace contains routes of the platform.
func isPlatform(namespace string) bool {
	return namespace == "default" || namespace == "openshift" || strings.HasPrefix(namespace, "openshift-") || strings.HasPrefix(namespace, "kube-")
}

// permitted checks the user's permission for routes/custom-host: the verb create for new routes and
// for certificates, and the verb update for changing a host. Without the permission, the host of a
// route cannot change, so that no user can hijack the host of a newer route.
func (h *hosts) permitted(ctx context.Context, route, old *routev1.Route) field.ErrorList {
	at := field.NewPath("spec")
	if old == nil {
		hasHost := route.Spec.Host != "" && route.Spec.Host != h.generated(route) || route.Spec.Subdomain != "" ||
			route.Spec.WildcardPolicy == routev1.WildcardPolicySubdomain
		switch {
		case hasHost && !h.may(ctx, "create", route):
			return field.ErrorList{field.Forbidden(at.Child("host"), "you do not have permission to set the host field of the route")}
		case hasCertificates(route.Spec.TLS) && !h.may(ctx, "create", route):
			return field.ErrorList{field.Forbidden(at.Child("tls"), "you do not have permission to set certificate fields on the route")}
		}
		return nil
	}
	if route.Spec.Host != old.Spec.Host && !h.may(ctx, "update", route) {
		return field.ErrorList{field.Invalid(at.Child("host"), route.Spec.Host, "field is immutable")}
	}
	if route.Spec.Subdomain != old.Spec.Subdomain && !h.may(ctx, "update", route) {
		return field.ErrorList{field.Invalid(at.Child("subdomain"), route.Spec.Subdomain, "field is immutable")}
	}
	// because an old route would claim the domain of all newer routes
	if route.Spec.WildcardPolicy != old.Spec.WildcardPolicy {
		return field.ErrorList{field.Invalid(at.Child("wildcardPolicy"), route.Spec.WildcardPolicy, "field is immutable")}
	}
	changed := hasCertificates(route.Spec.TLS) && !apiequality.Semantic.DeepEqual(certificates(route.Spec.TLS), certificates(old.Spec.TLS))
	if changed && !h.may(ctx, "create", route) {
		return field.ErrorList{field.Forbidden(at.Child("tls"), "you do not have permission to set certificate fields on the route")}
	}
	return nil
}

// certificates returns the fields of a TLS configuration that authenticate a host.
func certificates(tls *routev1.TLSConfig) [4]string {
	if tls == nil {
		return [4]string{}
	}
	return [4]string{tls.Certificate, tls.Key, tls.CACertificate, tls.DestinationCACertificate}
}

func hasCertificates(tls *routev1.TLSConfig) bool { return certificates(tls) != [4]string{} }

// may reports whether the user is allowed a verb on routes/custom-host. The server's own requests
// have no user and are always allowed.
func (h *hosts) may(ctx context.Context, verb string, route *routev1.Route) bool {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return true
	}
	decision, _, err := h.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: user, Verb: verb, Namespace: route.Namespace, APIGroup: routev1.GroupName, APIVersion: "v1",
		Resource: "routes", Subresource: "custom-host", Name: route.Name, ResourceRequest: true,
	})
	return err == nil && decision == authorizer.DecisionAllow
}
