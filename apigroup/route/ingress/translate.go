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
	"k8s.io/utils/ptr"
)

// sources are where a translation finds what an Ingress names: nil says that it is not there.
type sources struct {
	service func(name string) *corev1.Service
	secret  func(name string) *corev1.Secret
}

// translate makes the routes of an Ingress. notes says what of it is not served, and why.
func translate(ingress *networkingv1.Ingress, from sources) (routes []*routev1.Route, notes []string) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if ingress.Spec.DefaultBackend != nil {
		note("the default backend is not served, since routes need a host")
	}
	for i, rule := range ingress.Spec.Rules {
		switch {
		case rule.Host == "":
			note("rule %d is not served, since it has no host", i)
			continue
		case strings.HasPrefix(rule.Host, "*."):
			note("host %q is not served: make a Route with wildcardPolicy Subdomain", rule.Host)
			continue
		case rule.HTTP == nil:
			continue
		}
		tls, problem := termination(ingress, rule.Host, from)
		if problem != "" {
			note("host %q is not served: %s", rule.Host, problem)
			continue
		}
		for _, path := range rule.HTTP.Paths {
			spec, problem := specOf(rule.Host, path, from)
			if problem != "" {
				note("host %q, path %q is not served: %s", rule.Host, path.Path, problem)
				continue
			}
			spec.TLS = tls
			routes = append(routes, routeOf(ingress, spec))
		}
	}
	slices.SortFunc(routes, func(a, b *routev1.Route) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(routes, func(a, b *routev1.Route) bool { return a.Name == b.Name }), notes
}

// termination is where TLS ends for a host: at the router, if the Ingress names a secret for the host, and HTTP leads to HTTPS.
func termination(ingress *networkingv1.Ingress, host string, from sources) (tls *routev1.TLSConfig, problem string) {
	for _, entry := range ingress.Spec.TLS {
		if !slices.Contains(entry.Hosts, host) {
			continue
		}
		tls = &routev1.TLSConfig{Termination: routev1.TLSTerminationEdge, InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyRedirect}
		if entry.SecretName == "" {
			return tls, "" // with the router's certificate
		}
		secret := from.secret(entry.SecretName)
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

func specOf(host string, path networkingv1.HTTPIngressPath, from sources) (spec routev1.RouteSpec, problem string) {
	backend := path.Backend.Service
	if ptr.Deref(path.PathType, networkingv1.PathTypeImplementationSpecific) == networkingv1.PathTypeExact {
		return spec, "routes know paths of type Prefix alone"
	}
	if backend == nil {
		return spec, "its backend is no service"
	}
	service := from.service(backend.Name)
	if service == nil {
		return spec, fmt.Sprintf("there is no service %q", backend.Name)
	}
	spec = routev1.RouteSpec{Host: host, Path: path.Path, To: routev1.RouteTargetReference{Kind: "Service", Name: backend.Name}}
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
func routeOf(ingress *networkingv1.Ingress, spec routev1.RouteSpec) *routev1.Route {
	sum := sha256.Sum256([]byte(spec.Host + spec.Path))
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
	return route
}

func usesService(ingress *networkingv1.Ingress, name string) bool {
	for _, rule := range ingress.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for _, path := range rule.HTTP.Paths {
			if path.Backend.Service != nil && path.Backend.Service.Name == name {
				return true
			}
		}
	}
	return false
}

func usesSecret(ingress *networkingv1.Ingress, name string) bool {
	return slices.ContainsFunc(ingress.Spec.TLS, func(entry networkingv1.IngressTLS) bool { return entry.SecretName == name })
}
