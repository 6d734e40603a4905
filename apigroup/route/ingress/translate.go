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

// PathType is the annotation of routes whose path is that alone and nothing below it, with the value Exact; the router knows it.
const PathType = "router.slipway.io/path-type"

// sources are where a translation finds what an Ingress names: nil says that it is not there.
type sources struct {
	service func(name string) *corev1.Service
	secret  func(name string) *corev1.Secret
	// domain is what the hosts of rules without one stand below.
	domain string
}

// translation makes the routes of an Ingress.
type translation struct {
	sources
	ingress *networkingv1.Ingress
	routes  []*routev1.Route
	notes   []string
}

// translate makes the routes of an Ingress, by name. notes says what of it is not served, and why.
//
// A rule without a host has the one that a route of the name of the Ingress would get. The default backend is for what no path of a host leads to, and
// for that host if there are no rules: an Ingress has no claim to hosts that it does not name.
func translate(ingress *networkingv1.Ingress, from sources) (routes []*routev1.Route, notes []string) {
	t := &translation{sources: from, ingress: ingress}
	rules := slices.Clone(ingress.Spec.Rules)
	if len(rules) == 0 && ingress.Spec.DefaultBackend != nil {
		rules = append(rules, networkingv1.IngressRule{})
	}
	rooted := map[string]bool{} // hosts all of whose requests are led somewhere
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

// rule makes the routes of a host.
func (t *translation) rule(number int, host string, paths []networkingv1.HTTPIngressPath) {
	if len(paths) == 0 {
		return
	}
	served, policy := host, routev1.WildcardPolicyNone
	switch {
	case host == "":
		served = t.ingress.Name + "-" + t.ingress.Namespace + "." + t.domain
		if errs := validation.IsDNS1123Subdomain(served); len(errs) > 0 || t.domain == "" || len(t.ingress.Name+t.ingress.Namespace) >= validation.DNS1123LabelMaxLength {
			t.note("rule %d is not served, since it has no host, and %q cannot be one", number, served)
			return
		}
	case strings.HasPrefix(host, "*."):
		served, policy = "wildcard"+host[1:], routev1.WildcardPolicySubdomain
	}
	tls, problem := t.termination(host)
	if problem != "" {
		t.note("host %q is not served: %s", host, problem)
		return
	}
	for _, path := range paths {
		spec, problem := t.specOf(path)
		if problem != "" {
			t.note("host %q, path %q is not served: %s", host, path.Path, problem)
			continue
		}
		spec.Host, spec.WildcardPolicy, spec.TLS = served, policy, tls
		t.routes = append(t.routes, routeOf(t.ingress, host, path, spec))
	}
}

// termination is where TLS ends for a host: at the router, if the Ingress names a secret for the host, and HTTP leads to HTTPS. An entry that names
// no host is for all.
func (t *translation) termination(host string) (tls *routev1.TLSConfig, problem string) {
	for _, entry := range t.ingress.Spec.TLS {
		if len(entry.Hosts) > 0 && !slices.ContainsFunc(entry.Hosts, func(name string) bool { return covers(name, host) }) {
			continue
		}
		tls = &routev1.TLSConfig{Termination: routev1.TLSTerminationEdge, InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyRedirect}
		if entry.SecretName == "" {
			return tls, "" // with the router's certificate
		}
		secret := t.secret(entry.SecretName)
		if secret == nil || secret.Type != corev1.SecretTypeTLS {
			return nil, fmt.Sprintf("there is no secret %q of type %s", entry.SecretName, corev1.SecretTypeTLS)
		}
		tls.Certificate, tls.Key = string(secret.Data[corev1.TLSCertKey]), string(secret.Data[corev1.TLSPrivateKeyKey])
		if tls.Certificate == "" || tls.Key == "" {
			return nil, fmt.Sprintf("secret %q lacks its certificate or its key", entry.SecretName)
		}
		return tls, ""
	}
	return nil, ""
}

// covers says whether a name of a TLS entry, which may be a wildcard, stands for the host of a rule.
func covers(name, host string) bool {
	domain, wild := strings.CutPrefix(name, "*")
	_, of, _ := strings.Cut(host, ".")
	return name == host || wild && host != "" && domain == "."+of
}

func (t *translation) specOf(path networkingv1.HTTPIngressPath) (spec routev1.RouteSpec, problem string) {
	backend := path.Backend.Service
	if backend == nil {
		return spec, "its backend is no service"
	}
	service := t.service(backend.Name)
	if service == nil {
		return spec, fmt.Sprintf("there is no service %q", backend.Name)
	}
	spec = routev1.RouteSpec{Path: path.Path, To: routev1.RouteTargetReference{Kind: "Service", Name: backend.Name}}
	if trimmed := strings.TrimRight(path.Path, "/"); trimmed != "" && typeOf(path) == networkingv1.PathTypePrefix {
		spec.Path = trimmed // a slash at the end of a prefix means nothing, while it would in a route
	}
	for _, port := range service.Spec.Ports {
		if backend.Port.Name != "" && backend.Port.Name != port.Name || backend.Port.Name == "" && backend.Port.Number != port.Port {
			continue
		}
		if port.Name != "" { // the only port may have no name, and is found without one
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

// forRouters are how annotations begin that an Ingress hands to its routes.
func forRouters() []string {
	return []string{"haproxy.router.openshift.io/", "router.openshift.io/", "route.openshift.io/"}
}

// maxPrefix is how much of the name of an Ingress stands in the names of its routes, which have 63 characters at most.
const maxPrefix = 50

// routeOf makes a route. Its name follows from its host and path, so that none is made twice.
func routeOf(ingress *networkingv1.Ingress, host string, path networkingv1.HTTPIngressPath, spec routev1.RouteSpec) *routev1.Route {
	identity, exact := host+spec.Path, typeOf(path) == networkingv1.PathTypeExact
	if exact { // a path can be there twice, alone and for what is below it
		identity += "?"
	}
	sum := sha256.Sum256([]byte(identity))
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

// backends are all that an Ingress names.
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
