package ingress

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// PathType is the annotation of routes with an exact path. Its value is Exact. The router reads
// this annotation.
const PathType = "router.slipway.io/path-type"

// sources contains functions that look up the objects that an Ingress refers to. The functions
// return nil if an object does not exist.
type sources struct {
	service func(name string) *corev1.Service
	secret  func(name string) *corev1.Secret
	// domain is the parent domain of the hosts that are generated for rules without a host.
	domain string
}

// translation converts an Ingress to routes.
type translation struct {
	sources
	ingress *networkingv1.Ingress
	routes  []*routev1.Route
	notes   []string
}

// translate returns an Ingress's routes, sorted by name. notes lists the parts that are not served,
// with the reasons.
//
// A rule without a host applies to the host that would be generated for a route with the Ingress's
// name. The default backend serves the paths of a host that have no other backend. If the Ingress
// has no rules, the default backend serves only the generated host, because an Ingress cannot claim
// hosts that it does not contain.
func translate(ingress *networkingv1.Ingress, from sources) (routes []*routev1.Route, notes []string) {
	t := &translation{sources: from, ingress: ingress}
	rules := slices.Clone(ingress.Spec.Rules)
	if len(rules) == 0 && ingress.Spec.DefaultBackend != nil {
		rules = append(rules, networkingv1.IngressRule{})
	}
	rooted := map[string]bool{} // hosts with a backend for all requests
	for _, rule := range rules {
		if rule.HTTP == nil {
			continue
		}
		for _, path := range rule.HTTP.Paths {
			if strings.Trim(path.Path, "/") == "" && typeOf(path) != networkingv1.PathTypeExact {
				rooted[rule.Host] = true
			}
		}
	}
	for i, rule := range rules {
		paths := []networkingv1.HTTPIngressPath{}
		if rule.HTTP != nil {
			paths = append(paths, rule.HTTP.Paths...)
		}
		if backend := ingress.Spec.DefaultBackend; backend != nil && !rooted[rule.Host] {
			rooted[rule.Host] = true
			paths = append(paths, networkingv1.HTTPIngressPath{Path: "/", Backend: *backend})
		}
		t.rule(i, rule.Host, paths)
	}
	slices.SortStableFunc(t.routes, func(a, b *routev1.Route) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(t.routes, func(a, b *routev1.Route) bool { return a.Name == b.Name }), t.notes
}

func typeOf(path networkingv1.HTTPIngressPath) networkingv1.PathType {
	return ptr.Deref(path.PathType, networkingv1.PathTypeImplementationSpecific)
}

func (t *translation) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// rule adds a route for each path of an Ingress rule. Notes use the number to identify a rule
// without a host.
func (t *translation) rule(number int, host string, paths []networkingv1.HTTPIngressPath) {
	if len(paths) == 0 {
		return
	}
	content, policy := host, routev1.WildcardPolicyNone
	switch {
	case host == "":
		content = t.ingress.Name + "-" + t.ingress.Namespace + "." + t.domain
		label := len(t.ingress.Name + t.ingress.Namespace)
		if errs := validation.IsDNS1123Subdomain(content); len(errs) > 0 || t.domain == "" || label >= validation.DNS1123LabelMaxLength {
			t.note("rule %d is not served: it has no host, and the generated host %q is not valid", number, content)
			return
		}
	case strings.HasPrefix(host, "*."):
		content, policy = "wildcard"+host[1:], routev1.WildcardPolicySubdomain
	}
	tls, reason := t.termination(host)
	if reason != "" {
		t.note("host %q is not served: %s", host, reason)
		return
	}
	for _, path := range paths {
		spec, reason := t.specOf(path)
		if reason != "" {
			t.note("host %q, path %q is not served: %s", host, path.Path, reason)
			continue
		}
		spec.Host, spec.WildcardPolicy, spec.TLS = content, policy, tls
		t.routes = append(t.routes, routeOf(t.ingress, host, path, spec))
	}
}

// termination returns a host's TLS configuration. If the Ingress has a TLS entry for the host, TLS
// is terminated at the router, and HTTP requests are redirected to HTTPS. An entry without hosts
// applies to all hosts.
func (t *translation) termination(host string) (tls *routev1.TLSConfig, reason string) {
	for _, entry := range t.ingress.Spec.TLS {
		if len(entry.Hosts) > 0 && !slices.ContainsFunc(entry.Hosts, func(name string) bool { return covers(name, host) }) {
			continue
		}
		tls = &routev1.TLSConfig{
			Termination:                   routev1.TLSTerminationEdge,
			InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyRedirect,
		}
		if entry.SecretName == "" {
			return tls, "" // the router uses its own certificate
		}
		secret := t.secret(entry.SecretName)
		if secret == nil || secret.Type != corev1.SecretTypeTLS {
			return nil, fmt.Sprintf("secret %q of type %s does not exist", entry.SecretName, corev1.SecretTypeTLS)
		}
		tls.Certificate, tls.Key = string(secret.Data[corev1.TLSCertKey]), string(secret.Data[corev1.TLSPrivateKeyKey])
		if tls.Certificate == "" || tls.Key == "" {
			return nil, fmt.Sprintf("secret %q lacks its certificate or its key", entry.SecretName)
		}
		return tls, ""
	}
	return nil, ""
}

// covers reports whether the host in a TLS entry, which can be a wildcard, matches a rule's host.
func covers(name, host string) bool {
	domain, wild := strings.CutPrefix(name, "*")
	_, of, _ := strings.Cut(host, ".")
	return name == host || wild && host != "" && domain == "."+of
}

func (t *translation) specOf(path networkingv1.HTTPIngressPath) (spec routev1.RouteSpec, reason string) {
	backend := path.Backend.Service
	if backend == nil {
		return spec, "its backend is not a service"
	}
	service := t.service(backend.Name)
	if service == nil {
		return spec, fmt.Sprintf("service %q does not exist", backend.Name)
	}
	spec = routev1.RouteSpec{Path: path.Path, To: routev1.RouteTargetReference{Kind: "Service", Name: backend.Name}}
	if trimmed := strings.TrimRight(path.Path, "/"); trimmed != "" && typeOf(path) == networkingv1.PathTypePrefix {
		spec.Path = trimmed // a trailing slash matters in a route, but not in an Ingress prefix
	}
	for _, port := range service.Spec.Ports {
		if backend.Port.Name != "" && backend.Port.Name != port.Name || backend.Port.Name == "" && backend.Port.Number != port.Port {
			continue
		}
		if port.Name != "" { // a service's only port can lack a name; routes use it by default
			spec.Port = &routev1.RoutePort{TargetPort: intstr.FromString(port.Name)}
		}
		return spec, ""
	}
	return spec, fmt.Sprintf("service %q has no port %s", backend.Name, portText(backend.Port))
}

func portText(port networkingv1.ServiceBackendPort) string {
	if port.Name != "" {
		return port.Name
	}
	return fmt.Sprint(port.Number)
}

// forRouters returns the prefixes of the annotations that the controller copies from an Ingress to
// its routes.
func forRouters() []string {
	return []string{"haproxy.router.openshift.io/", "router.openshift.io/", "route.openshift.io/"}
}

// maxPrefix is the maximum length of the Ingress's name in the names of its routes. A longer name
// is truncated, because a route's name can have at most 63 characters.
const maxPrefix = 50

// routeOf returns the route for a path of an Ingress. The route's name is derived from its host and
// path, so duplicate paths result in a single route.
func routeOf(ingress *networkingv1.Ingress, host string, path networkingv1.HTTPIngressPath, spec routev1.RouteSpec) *routev1.Route {
	key, exact := host+spec.Path, typeOf(path) == networkingv1.PathTypeExact
	if exact { // a path can occur both as an exact path and as a prefix
		key += "?"
	}
	sum := sha256.Sum256([]byte(key))
	prefix := strings.TrimRight(ingress.Name[:min(len(ingress.Name), maxPrefix)], ".-")
	route := &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{
			Name: prefix + "-" + hex.EncodeToString(sum[:])[:10], Namespace: ingress.Namespace, Labels: ingress.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ingress, networkingv1.SchemeGroupVersion.WithKind("Ingress"))},
		},
		Spec: spec,
	}
	for name, value := range ingress.Annotations {
		if slices.ContainsFunc(forRouters(), func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			metav1.SetMetaDataAnnotation(&route.ObjectMeta, name, value)
		}
	}
	if exact {
		metav1.SetMetaDataAnnotation(&route.ObjectMeta, PathType, string(networkingv1.PathTypeExact))
	}
	return route
}

// backends returns all backends of an Ingress.
func backends(ingress *networkingv1.Ingress) (all []networkingv1.IngressBackend) {
	if ingress.Spec.DefaultBackend != nil {
		all = append(all, *ingress.Spec.DefaultBackend)
	}
	for _, rule := range ingress.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for _, path := range rule.HTTP.Paths {
			all = append(all, path.Backend)
		}
	}
	return all
}

func usesService(ingress *networkingv1.Ingress, name string) bool {
	return slices.ContainsFunc(backends(ingress), func(b networkingv1.IngressBackend) bool { return b.Service != nil && b.Service.Name == name })
}

func usesSecret(ingress *networkingv1.Ingress, name string) bool {
	return slices.ContainsFunc(ingress.Spec.TLS, func(entry networkingv1.IngressTLS) bool { return entry.SecretName == name })
}
