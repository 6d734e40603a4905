// Package claim decides which routes a router serves: each host and path belongs to the oldest route that asks for it, and a host to
// the namespace of the oldest one. It only answers that question and keeps no state, so that every router of a shard comes to the same
// answer, after each restart too.
//
// Source: OpenShift Container Platform 3.9 Architecture, sections on routers (ownership, allowed and denied domains) and routes
// (host claims, wildcards).
package claim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The reasons of rejections, as they stand in the condition Admitted of a route.
const (
	NoHostValue        = "NoHostValue"
	InvalidHost        = "InvalidHost"
	InvalidPath        = "InvalidPath"
	RouteNotAdmitted   = "RouteNotAdmitted"
	HostAlreadyClaimed = "HostAlreadyClaimed"
)

// Policy is what a router allows.
type Policy struct {
	// Wildcards lets routes with the wildcard policy Subdomain be served.
	Wildcards bool
	// AnyNamespace lets several namespaces share a host; only the same host and path are refused then.
	AnyNamespace bool
	// Allowed and Denied are domains; each stands for its subdomains too. A denied domain wins, and no allowed one means all.
	Allowed, Denied []string
}

// Verdict is what a router says about a route: admitted, or why not.
type Verdict struct {
	// Route is the route with the host that this router gives it.
	Route *routev1.Route
	// Reason and Message are empty for routes that are admitted.
	Reason, Message string
}

// Admitted says whether the route is served.
func (v Verdict) Admitted() bool { return v.Reason == "" }

// Judge gives a verdict for each route, the oldest route first.
func Judge(routes []*routev1.Route, policy Policy) []Verdict {
	sorted := slices.Clone(routes)
	slices.SortFunc(sorted, compare)
	book := claims{policy: policy, exact: make(map[string]*routev1.Route, len(routes)), owners: make(map[string]owned, len(routes)), domains: map[string]owned{}}
	verdicts := make([]Verdict, 0, len(sorted))
	for _, route := range sorted {
		reason, message := book.judge(route)
		verdicts = append(verdicts, Verdict{route, reason, message})
	}
	return verdicts
}

// compare orders routes by age. Those of the same second have the order of their UIDs.
func compare(a, b *routev1.Route) int {
	if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
		return order
	}
	return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// owned are the namespaces that have claimed something; more than one only where the policy lets them.
type owned []string

func (o owned) byOther(namespace string) bool { return len(o) > 0 && !slices.Contains(o, namespace) }

// claims is what the routes so far, which are older, have.
type claims struct {
	policy  Policy
	exact   map[string]*routev1.Route // by host and path
	owners  map[string]owned          // by host, a wildcard as "*.domain"
	domains map[string]owned          // by domain: those that have a host in it
}

func (c *claims) judge(route *routev1.Route) (reason, message string) {
	if reason, message = c.acceptable(route); reason != "" {
		return reason, message
	}
	name, domain := served(route), Domain(route.Spec.Host)
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
		older = other // only a namespace itself may have a path alone in its path, or what is below one
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

func note(claimed map[string]owned, name, namespace string) {
	switch owners := claimed[name]; {
	case owners == nil:
		claimed[name] = owned{namespace}
	case !slices.Contains(owners, namespace):
		claimed[name] = append(owners, namespace)
	}
}

// acceptable looks at the route alone.
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
		return InvalidHost, fmt.Sprintf("host %q has no domain that a wildcard could stand for", host)
	}
	return "", ""
}

// hostProblems says what is wrong with a host. The usual ones, of which there are many, pass without a regular expression.
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

// badPath says what keeps a path out of the router's tables. A request's path has no such bytes: browsers escape them.
func badPath(path string) string {
	for _, c := range []byte(path) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`?#"'\`, c) >= 0 {
			return fmt.Sprintf("path %q has the character %q; write it percent-encoded", path, c)
		}
	}
	return ""
}

// ownedByOther says who stands in the way of a namespace that has not claimed the host.
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

// served is the name that a route answers to: its host, or "*.domain".
func served(route *routev1.Route) string {
	if IsWildcard(route) {
		return "*." + Domain(route.Spec.Host)
	}
	return route.Spec.Host
}

// path is a route's path as claims compare it: nothing and "/" are the same.
func path(route *routev1.Route) string {
	if route.Spec.Path == "" {
		return "/"
	}
	return route.Spec.Path
}

// PathType is the annotation of routes whose path is that alone and nothing below it, with the value Exact: a path of this type of an Ingress becomes
// such a route.
const PathType = "router.slipway.io/path-type"

// Exact says whether a route with annotations is for its path alone.
func Exact(annotations map[string]string) bool { return annotations[PathType] == "Exact" }

// IsWildcard says whether a route is for every host of a domain.
func IsWildcard(route *routev1.Route) bool {
	return route.Spec.WildcardPolicy == routev1.WildcardPolicySubdomain
}

// Domain is a host without its first label.
func Domain(host string) string {
	_, domain, _ := strings.Cut(host, ".")
	return domain
}

// within is the domain of a list that a host is or is below.
func within(host string, domains []string) string {
	for _, domain := range domains {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return domain
		}
	}
	return ""
}
