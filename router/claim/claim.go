// Package claim decides which routes a router serves. Each host and path belongs to the oldest
// route that claims it, and a host belongs to the namespace of its oldest route. The package keeps
// no state, so every router in a shard makes the same decisions, even after a restart.
//
// Source: OpenShift Container Platform 3.9 Architecture, sections on routers (ownership, allowed
// and denied domains) and routes (host claims, wildcards).
package claim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Rejection reasons in a route's Admitted condition.
const (
	NoHostValue        = "NoHostValue"
	InvalidHost        = "InvalidHost"
	InvalidPath        = "InvalidPath"
	RouteNotAdmitted   = "RouteNotAdmitted"
	HostAlreadyClaimed = "HostAlreadyClaimed"
)

// Policy configures which routes a router admits.
type Policy struct {
	// Wildcards admits routes with the wildcard policy Subdomain.
	Wildcards bool
	// AnyNamespace allows several namespaces to share a host. Only routes with the same host and
	// path conflict.
	AnyNamespace bool
	// Allowed and Denied list domains. Each domain includes its subdomains. Denied takes precedence
	// over Allowed. If Allowed is empty, all domains are allowed.
	Allowed, Denied []string
}

// Verdict is the router's decision about a route.
type Verdict struct {
	// Route is the route, with the host that this router assigns to it.
	Route *routev1.Route
	// Reason and Message are empty if the route is admitted.
	Reason, Message string
}

// Admitted reports whether the router serves the route.
func (v Verdict) Admitted() bool { return v.Reason == "" }

// Judge decides for each route whether the router serves it. Older routes take precedence.
func Judge(routes []*routev1.Route, policy Policy) []Verdict {
	sorted := slices.Clone(routes)
	slices.SortFunc(sorted, compare)
	book := claims{
		policy: policy, exact: make(map[string]*routev1.Route, len(routes)),
		owners: make(map[string]owned, len(routes)), domains: map[string]owned{},
	}
	verdicts := make([]Verdict, 0, len(sorted))
	for _, route := range sorted {
		reason, message := book.decide(route)
		verdicts = append(verdicts, Verdict{route, reason, message})
	}
	return verdicts
}

// compare orders routes by age. Routes that were created in the same second are ordered by UID.
func compare(a, b *routev1.Route) int {
	if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
		return order
	}
	return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// owned lists the namespaces that claim a host or domain. It contains at most one namespace unless
// AnyNamespace is set.
type owned []string

func (o owned) byOther(namespace string) bool { return len(o) > 0 && !slices.Contains(o, namespace) }

// claims contains the claims of older routes.
type claims struct {
	policy  Policy
	exact   map[string]*routev1.Route // routes by host and path; keys of exact paths end with "?"
	owners  map[string]owned          // namespaces by host; a wildcard's host is "*.domain"
	domains map[string]owned          // namespaces that claim a host in the domain, by domain
}

func (c *claims) decide(route *routev1.Route) (reason, message string) {
	if reason, message = c.acceptable(route); reason != "" {
		return reason, message
	}
	name, domain := hostOf(route), Domain(route.Spec.Host)
	if !c.policy.AnyNamespace {
		if message := c.ownedByOther(route, name, domain); message != "" {
			return HostAlreadyClaimed, message
		}
	}
	key, beside := name+path(route), name+path(route)+"?"
	if Exact(route.Annotations) {
		key, beside = beside, key
	}
	older := c.exact[key]
	if other := c.exact[beside]; older == nil && other != nil && other.Namespace != route.Namespace {
		older = other // an exact path and the paths below it must be in the same namespace
	}
	if older != nil {
		if older.Namespace != route.Namespace {
			return HostAlreadyClaimed, fmt.Sprintf("a route in another namespace holds %s%s and is older than %s", name, route.Spec.Path, route.Name)
		}
		return HostAlreadyClaimed, fmt.Sprintf("route %s already exposes %s%s and is older", older.Name, name, route.Spec.Path)
	}
	c.exact[key] = route
	note(c.owners, name, route.Namespace)
	note(c.domains, domain, route.Namespace)
	return "", ""
}

func note(claims map[string]owned, name, namespace string) {
	switch owners := claims[name]; {
	case owners == nil:
		claims[name] = owned{namespace}
	case !slices.Contains(owners, namespace):
		claims[name] = append(owners, namespace)
	}
}

// acceptable checks a route independently of other routes. If the route is acceptable, reason and
// message are empty.
func (c *claims) acceptable(route *routev1.Route) (reason, message string) {
	host := route.Spec.Host
	if host == "" {
		return NoHostValue, "no host value was defined for the route"
	}
	if problems := hostProblems(host); len(problems) > 0 {
		return InvalidHost, fmt.Sprintf("host name %q is not valid: %s", host, strings.Join(problems, "; "))
	}
	if problem := badPath(route.Spec.Path); problem != "" {
		return InvalidPath, problem
	}
	if domain := within(host, c.policy.Denied); domain != "" {
		return RouteNotAdmitted, fmt.Sprintf("host in denied domain %s", domain)
	}
	if len(c.policy.Allowed) > 0 && within(host, c.policy.Allowed) == "" {
		return RouteNotAdmitted, "host not in the allowed list of domains"
	}
	if IsWildcard(route) && !c.policy.Wildcards {
		return RouteNotAdmitted, "wildcard routes are not allowed"
	}
	if IsWildcard(route) && Domain(host) == "" {
		return InvalidHost, fmt.Sprintf("host %q has no parent domain for a wildcard", host)
	}
	return "", ""
}

// hostProblems returns the problems of a host. A router can have many hosts, so hostProblems
// accepts common hosts without a slow regular expression.
func hostProblems(host string) []string {
	last := byte('.')
	for i := range len(host) {
		c := host[i]
		usual := 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' && last != '.' || c == '.' && last != '.' && last != '-'
		if !usual {
			return validation.IsDNS1123Subdomain(host)
		}
		last = c
	}
	if last == '.' || last == '-' || len(host) > validation.DNS1123SubdomainMaxLength {
		return validation.IsDNS1123Subdomain(host)
	}
	return nil
}

// badPath returns the reason why HAProxy's map files cannot contain a path. Request paths never
// contain the bytes that badPath reports, because browsers escape them.
func badPath(path string) string {
	for _, c := range []byte(path) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`?#"'\`, c) >= 0 {
			return fmt.Sprintf("path %q has the character %q; write it percent-encoded", path, c)
		}
	}
	return ""
}

// ownedByOther returns a message if another namespace has claimed the host or its domain, or "".
func (c *claims) ownedByOther(route *routev1.Route, name, domain string) string {
	switch {
	case c.owners[name].byOther(route.Namespace):
		return fmt.Sprintf("a route in another namespace holds %s and is older than %s", name, route.Name)
	case c.owners["*."+domain].byOther(route.Namespace):
		return fmt.Sprintf("a wildcard route in another namespace holds *.%s and is older than %s", domain, route.Name)
	case !IsWildcard(route):
		return ""
	}
	for _, namespace := range c.domains[domain] {
		if namespace != route.Namespace {
			return fmt.Sprintf("a route in another namespace holds a host in %s and is older than %s", domain, route.Name)
		}
	}
	return ""
}

// hostOf returns the name that a route serves: its host, or "*.domain".
func hostOf(route *routev1.Route) string {
	if IsWildcard(route) {
		return "*." + Domain(route.Spec.Host)
	}
	return route.Spec.Host
}

// path returns a route's path, or the equivalent "/" if the path is empty.
func path(route *routev1.Route) string {
	if route.Spec.Path == "" {
		return "/"
	}
	return route.Spec.Path
}

// PathType is a route annotation. With the value Exact, a route matches only its own path and not
// the paths below it. Routes for Ingress paths of type Exact have this annotation.
const PathType = "router.slipway.io/path-type"

// Exact reports whether a route with these annotations matches only its own path.
func Exact(annotations map[string]string) bool { return annotations[PathType] == "Exact" }

// IsWildcard reports whether a route serves all hosts in a domain.
func IsWildcard(route *routev1.Route) bool {
	return route.Spec.WildcardPolicy == routev1.WildcardPolicySubdomain
}

// Domain returns a host name without its first label.
func Domain(host string) string {
	_, domain, _ := strings.Cut(host, ".")
	return domain
}

// within returns the first domain in a list that contains a host, or "".
func within(host string, domains []string) string {
	for _, domain := range domains {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return domain
		}
	}
	return ""
}
