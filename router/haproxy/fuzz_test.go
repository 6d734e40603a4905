package haproxy

import (
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/router/claim"
)

// FuzzRoute checks that HAProxy accepts every admitted route, and that the route's configuration
// contains exactly one backend and one server.
func FuzzRoute(f *testing.F) {
	for _, seed := range [][3]string{
		{"www.example.com", "/path", "max-age=1;preload"}, {"a.b", "/'\"\n", "10.0.0.1 \n server evil 127.0.0.1:1"}, {"127.0.0.1", "/;#", "%[env(PATH)]"},
		{"x", "/\x00", "\x00"}, {"y", "/a;shutdown sessions", strings.Repeat("10.0.0.0/8 ", 3000)}, {"z\nbackend q", "", "5s\n"}, {"h", "/%{+Q}o", "${HOME}"}, {"*.x", "/", "'"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	names := []string{annotationBalance, annotationCookie, annotationWhitelist, annotationHSTS, annotationInterval, "haproxy.router.openshift.io/timeout",
		"haproxy.router.openshift.io/disable_cookies", "haproxy.router.openshift.io/rate-limit-connections", "haproxy.router.openshift.io/rate-limit-connections.rate-http"}
	f.Fuzz(func(t *testing.T, host, path, value string) {
		b := newFixture(t, nil)
		b.pods["web"] = []string{"192.0.2.1:80"}
		for _, termination := range []routev1.TLSTerminationType{"", "edge", "passthrough"} {
			route := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r" + string(termination), Annotations: map[string]string{}}}
			route.Spec = routev1.RouteSpec{Host: host, Path: path, To: routev1.RouteTargetReference{Name: "web"}}
			if termination != "" {
				route.Spec.TLS = &routev1.TLSConfig{Termination: termination}
			}
			for _, name := range names {
				route.Annotations[name] = value
			}
			for _, verdict := range claim.Judge([]*routev1.Route{route}, claim.Policy{}) {
				if verdict.Admitted() {
					b.routes[route.Name] = route
				}
			}
		}
		config := b.config()
		text := config.Text()[len(config.Frame):]
		if backends, servers := strings.Count(text, "\nbackend "), strings.Count(text, "\n  server "); backends != len(b.routes) || servers != len(b.routes) {
			t.Errorf("%d routes have %d backends with %d servers in\n%s", len(b.routes), backends, servers, text)
		}
		if err := b.valid(config); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	})
}
