package haproxy

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/router/claim"
)

// The values from which the tests build random routes and requests.
var (
	claimedHosts = []string{"www.x.com", "ftp.x.com", "*.x.com", "www.y.com", "*.y.com"}
	claimedPaths = []string{"", "/", "/a", "/a/", "/a/b", "/ab", "/a/b/c/"}
	requestHosts = []string{"www.x.com", "ftp.x.com", "zzz.x.com", "www.y.com", "other.y.com", "x.com"}
	requestPaths = []string{"/", "/a", "/a/", "/abc", "/a/b", "/a/b/c", "/a/b/c/d", "/q"}
)

// randomRoute returns a route with a random host, path, TLS configuration, weights and annotations.
func (b *fixture) randomRoute(random *rand.Rand, name string, age int,
	certificates []routev1.TLSConfig) *routev1.Route {
	one := func(of []string) string { return of[random.IntN(len(of))] }
	host := one(claimedHosts)
	route := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(age), 0)), Annotations: map[string]string{}}}
	route.Spec = routev1.RouteSpec{Host: strings.Replace(host, "*", "any", 1), Path: one(claimedPaths)}
	if strings.HasPrefix(host, "*") {
		route.Spec.WildcardPolicy = routev1.WildcardPolicySubdomain
	}
	if random.IntN(5) == 0 {
		route.Annotations[claim.PathType] = "Exact"
	}
	if random.IntN(4) == 0 {
		for _, annotation := range []string{annotationBalance, annotationCookie, annotationHSTS, annotationInterval} {
			route.Annotations[annotation] = hostile(random)
		}
	}
	policies, services := []string{"", "None", "Allow", "Redirect"}, "s"
	switch termination := one([]string{"", "edge", "reencrypt", "passthrough"}); termination {
	case "":
	case "passthrough":
		policies, services = []string{"", "None", "Redirect"}, "t"
		route.Spec.TLS, route.Spec.Path = &routev1.TLSConfig{}, ""
		delete(route.Annotations, claim.PathType)
		fallthrough
	default:
		if termination != "passthrough" {
			route.Spec.TLS = certificates[random.IntN(len(certificates))].DeepCopy()
		}
		if termination == "reencrypt" {
			services = "t"
		}
		route.Spec.TLS.Termination = routev1.TLSTerminationType(termination)
		route.Spec.TLS.InsecureEdgeTerminationPolicy = routev1.InsecureEdgeTerminationPolicyType(one(policies))
	}
	first := random.IntN(3)
	route.Spec.To = routev1.RouteTargetReference{Name: fmt.Sprint(services, first)}
	if random.IntN(3) == 0 {
		route.Spec.To.Weight = ptr.To(int32(random.IntN(3)))
		route.Spec.AlternateBackends = []routev1.RouteTargetReference{{Name: fmt.Sprint(services, (first+1)%3), Weight: ptr.To(int32(random.IntN(3)))}}
	}
	return route
}

// For any set of routes, HTTP and HTTPS requests reach the service that the claims determine, and
// HTTPS clients receive the host's certificate.
func TestRequestsFollowClaims(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	inside := b.authority.Issue(t, "pod")
	for i := range 3 {
		b.pod(fmt.Sprint("s", i), fmt.Sprint("s", i), nil)
		b.pod(fmt.Sprint("t", i), fmt.Sprint("t", i), &inside)
	}
	certificates := []routev1.TLSConfig{{}, b.of("c1"), b.of("c2")}
	b.run()
	random := rand.New(rand.NewPCG(5, 6))
	for round := range 6 {
		var all []*routev1.Route
		for i := range 14 {
			all = append(all, b.randomRoute(random, fmt.Sprintf("r%d-%d", round, i), i, certificates))
		}
		b.routes = map[string]*routev1.Route{}
		for _, verdict := range claim.Judge(all, claim.Policy{Wildcards: true}) {
			if verdict.Admitted() {
				b.routes[verdict.Route.Name] = verdict.Route
			}
		}
		number := b.engine.Set(b.config())
		eventually.True(t, "all routes are served", func() bool { return b.engine.Reached(number) })
		for _, host := range requestHosts {
			b.untilShown(host, expectedCertificate(b.routes, host))
			for i, path := range requestPaths {
				for j, scheme := range []string{"http", "https"} {
					if (i+j+round)%2 == 0 { // use every other combination in each round
						continue
					}
					url, want := scheme+"://"+host+path, expected(b.routes, scheme, host, path)
					eventually.True(t, fmt.Sprintf("round %d: a response to %s from one of %s with the routes\n%s", round, url, want, listed(b.routes)), func() bool {
						// During a reload, the previous HAProxy process still responds.
						return slices.Contains(want, b.who(url))
					})
				}
			}
		}
	}
}

// listed formats routes as text.
func listed(routes map[string]*routev1.Route) string {
	var text strings.Builder
	for _, route := range routes {
		tls := routev1.TLSConfig{}
		if route.Spec.TLS != nil {
			tls = *route.Spec.TLS
		}
		fmt.Fprintf(&text, "%s: %s%s %s %s/%s %v %v\n", route.Name, route.Spec.Host, route.Spec.Path, route.Spec.WildcardPolicy, tls.Termination, tls.InsecureEdgeTerminationPolicy, targets(route), route.Annotations)
	}
	return text.String()
}

// passes, ends and insecure classify routes: the router passes a route's TLS connections through to
// the pods, terminates them, or serves the route over HTTP.
func passes(r *routev1.Route) bool {
	return r.Spec.TLS != nil && r.Spec.TLS.Termination == routev1.TLSTerminationPassthrough
}
func ends(r *routev1.Route) bool { return r.Spec.TLS != nil && !passes(r) }
func insecure(r *routev1.Route) bool {
	return r.Spec.TLS == nil || r.Spec.TLS.InsecureEdgeTerminationPolicy == "Redirect" || ends(r) && r.Spec.TLS.InsecureEdgeTerminationPolicy == "Allow"
}

// expected returns the possible responses, which are service names or status codes.
func expected(routes map[string]*routev1.Route, scheme, host, path string) []string {
	if scheme == "http" {
		route := longest(routes, insecure, host, path)
		if route != nil && route.Spec.TLS != nil && route.Spec.TLS.InsecureEdgeTerminationPolicy == "Redirect" {
			return []string{"302"}
		}
		return targets(route)
	}
	if route := passthroughRoute(routes, host); route != nil {
		return targets(route)
	}
	return targets(longest(routes, ends, host, path))
}

// passthroughRoute returns the passthrough route for a host. A route for the exact host takes
// precedence over a wildcard.
func passthroughRoute(routes map[string]*routev1.Route, host string) *routev1.Route {
	for _, wildcard := range []bool{false, true} {
		var passing, ending *routev1.Route
		for _, route := range routes {
			switch {
			case !matchesHost(route, host, wildcard):
			case passes(route):
				passing = route
			case ends(route):
				ending = route
			}
		}
		if passing != nil || ending != nil {
			return passing
		}
	}
	return nil
}

// longest returns the route with the longest matching path among the routes for a host or its
// wildcard.
func longest(routes map[string]*routev1.Route, of func(*routev1.Route) bool,
	host, path string) (best *routev1.Route) {
	for _, wildcard := range []bool{false, true} {
		length := -1
		for _, route := range routes {
			if !of(route) || !matchesHost(route, host, wildcard) || !fits(route, path) {
				continue
			}
			long := 2 * len(strings.TrimPrefix(route.Spec.Path, "/"))
			if claim.Exact(route.Annotations) {
				long++
			}
			if long > length {
				best, length = route, long
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

func matchesHost(route *routev1.Route, host string, wildcard bool) bool {
	if wildcard {
		return claim.IsWildcard(route) && claim.Domain(route.Spec.Host) == claim.Domain(host)
	}
	return !claim.IsWildcard(route) && route.Spec.Host == host
}

func fits(r *routev1.Route, path string) bool {
	route := r.Spec.Path
	if claim.Exact(r.Annotations) {
		return path == route || route == "" && path == "/"
	}
	return route == "" || route == "/" || path == route || strings.HasSuffix(route, "/") && strings.HasPrefix(path, route) || strings.HasPrefix(path, route+"/")
}

// targets returns the services that receive a route's requests.
func targets(route *routev1.Route) (services []string) {
	if route != nil {
		for _, to := range append([]routev1.RouteTargetReference{route.Spec.To}, route.Spec.AlternateBackends...) {
			if to.Weight == nil || *to.Weight > 0 {
				services = append(services, to.Name)
			}
		}
	}
	if len(services) == 0 && route != nil && passes(route) {
		return []string{"0"} // the connection is closed
	}
	if len(services) == 0 {
		return []string{"503"}
	}
	return services
}

// expectedCertificate returns the name in the certificate for a host. The certificate comes from
// the route with the shortest path for the host or its wildcard.
func expectedCertificate(routes map[string]*routev1.Route, host string) string {
	if route := passthroughRoute(routes, host); route != nil {
		if targets(route)[0] == "0" {
			return "EOF"
		}
		return "pod"
	}
	for _, wildcard := range []bool{false, true} {
		var best *routev1.Route
		for _, route := range slices.SortedFunc(maps.Values(routes), func(a, b *routev1.Route) int {
			// Routes with an exact path come last.
			return cmp.Or(cmp.Compare(len(a.Annotations[claim.PathType]), len(b.Annotations[claim.PathType])), cmp.Compare(a.Name, b.Name))
		}) {
			if ends(route) && route.Spec.TLS.Certificate != "" && matchesHost(route, host, wildcard) && (best == nil || len(route.Spec.Path) < len(best.Spec.Path)) {
				best = route
			}
		}
		if best != nil {
			return commonName(best.Spec.TLS.Certificate)
		}
	}
	return "default"
}

func commonName(text string) string {
	block, _ := pem.Decode([]byte(text))
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err.Error()
	}
	return certificate.Subject.CommonName
}
