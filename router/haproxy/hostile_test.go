package haproxy

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/claim"
	"github.com/slipway-platform/slipway/router/model"
)

// pieces are the parts from which the values of hostile routes are built.
var pieces = []string{"\n", "\r", "\x00", " ", "#", "'", `"`, `\`, "%[env(PATH)]", "\n  server evil 127.0.0.1:1\n", "backend x", "{", "}", "a", "1", "10.0.0.1", "/", "max-age=1", "5s", ";", "://", "💥", "${HOME}", "--"}

func hostile(random *rand.Rand) string {
	var text strings.Builder
	for range random.IntN(6) {
		text.WriteString(pieces[random.IntN(len(pieces))])
	}
	return text.String()
}

// TestHostileRoutesCannotChangeConfiguration checks that HAProxy accepts the configuration for
// arbitrary values in admitted routes, and that every server is a pod.
func TestHostileRoutesCannotChangeConfiguration(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("web", "web", nil)
	random := rand.New(rand.NewPCG(3, 4))
	names := []string{annotationBalance, annotationCookie, annotationWhitelist, annotationHSTS, annotationInterval, "haproxy.router.openshift.io/timeout",
		"haproxy.router.openshift.io/disable_cookies", "haproxy.router.openshift.io/rate-limit-connections.rate-http", "haproxy.router.openshift.io/rate-limit-connections.concurrent-tcp"}
	terminations := []routev1.TLSTerminationType{"", "edge", "reencrypt", "passthrough"}
	for i := range 400 {
		b.route(fmt.Sprint("r", i), fmt.Sprintf("h%d.com", i), "web", func(r *routev1.Route) {
			r.Annotations["haproxy.router.openshift.io/rate-limit-connections"] = "true"
			for _, name := range names {
				r.Annotations[name] = hostile(random)
			}
			if random.IntN(2) == 0 {
				r.Spec.Path = "/" + hostile(random)
			}
			if random.IntN(4) == 0 {
				r.Spec.Host = hostile(random)
			}
			if termination := terminations[random.IntN(4)]; termination != "" {
				r.Spec.TLS = &routev1.TLSConfig{Termination: termination, InsecureEdgeTerminationPolicy: "Allow"}
			}
		})
	}
	var all []*routev1.Route
	for _, route := range b.routes {
		all = append(all, route)
	}
	b.routes = map[string]*routev1.Route{}
	for _, verdict := range claim.Judge(all, claim.Policy{}) {
		if verdict.Admitted() {
			b.routes[verdict.Route.Name] = verdict.Route
		}
	}
	if len(b.routes) < 100 {
		t.Fatalf("only %d routes are admitted", len(b.routes))
	}
	config := b.config()
	if text := config.Text(); strings.Contains(text, "evil") || strings.Contains(text, "💥") || strings.Contains(text, "env(PATH)") {
		t.Errorf("the configuration contains text of a route:\n%s", text)
	}
	if err := b.valid(config); err != nil {
		t.Error(err)
	}
}

func TestTenThousandRoutesAreWritten(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	for i := range 10_000 {
		b.route(fmt.Sprint("r", i), fmt.Sprintf("h%d.com", i), "web")
	}
	if got := len(b.config().Backends); got != 10_000 {
		t.Errorf("the configuration has %d backends", got)
	}
}

// Data that is cached from one configuration must not affect the next configuration.
func TestConfigurationDoesNotDependOnPreviousOne(t *testing.T) {
	b := newFixture(t, nil)
	b.pods["web"], b.pods["test"] = []string{"192.0.2.1:80"}, []string{"192.0.2.2:80"}
	b.route("web", "web.com", "web")
	b.route("gone", "gone.com", "web")
	for _, change := range []func(){
		func() { b.routes["web"].Annotations = map[string]string{annotationBalance: "source"} },
		func() { b.pods["web"] = append(b.pods["web"], "192.0.2.3:80") },
		func() { b.routes["web"].Spec.Host = "other.com" },
		func() { delete(b.routes, "gone") },
		func() { b.route("gone", "gone.com/x", "test") },
		func() {
			secured(routev1.TLSConfig{Termination: "edge", InsecureEdgeTerminationPolicy: "Allow"})(b.routes["web"])
		},
	} {
		b.config()
		change()
		config := b.config()
		writer := Writer{Dir: b.writer.Dir, Settings: b.writer.Settings, DefaultCertificate: b.writer.DefaultCertificate}
		rebuilt, err := writer.Write(model.Build(b.admitted(), b.source()), nil, true)
		if err != nil {
			t.Fatal(err)
		}
		if config.Text() != rebuilt.Text() || !maps.EqualFunc(config.files(), rebuilt.files(), bytes.Equal) {
			t.Errorf("the configuration is\n%s\nwith files %s\nrebuilt from nothing, it is\n%s\nwith files %s", config.Text(), config.files(), rebuilt.Text(), rebuilt.files())
		}
	}
}
