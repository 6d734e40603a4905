package haproxy

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/router/claim"
)

func TestRequestsReachServiceOfRoute(t *testing.T) {
	t.Parallel()
	// HAProxy also waits for this timeout between connection retries, so keep it short.
	b := newFixture(t, map[string]string{"ROUTER_DEFAULT_CONNECT_TIMEOUT": "300ms"})
	b.pod("web", "web", nil)
	b.pod("test", "test", nil)
	b.pod("deep", "deep", nil)
	inside := b.authority.Issue(t, "pod")
	b.pod("tls", "tls", &inside)
	pair := b.authority.Issue(t, "own")
	certificate, key := text(t, pair.CertFile), text(t, pair.KeyFile)

	b.route("plain", "plain.com", "web")
	b.route("path", "plain.com/test", "test")
	b.route("slash", "plain.com/test/deep/", "deep")
	exact := annotated(claim.PathType, "Exact")
	b.route("exact", "plain.com/only", "deep", exact)
	b.route("exact-root", "root.com/", "test", exact)
	b.route("exact-test", "plain.com/test", "web", exact)
	wild := func(r *routev1.Route) { r.Spec.WildcardPolicy = routev1.WildcardPolicySubdomain }
	b.route("wild", "any.wild.com", "web", wild)
	b.route("one", "one.wild.com/only", "test")
	b.route("edge", "edge.com", "web", secured(routev1.TLSConfig{Termination: "edge", Certificate: certificate, Key: key}))
	b.route("allow", "allow.com", "web", secured(routev1.TLSConfig{Termination: "edge", InsecureEdgeTerminationPolicy: "Allow"}))
	b.route("redirect", "redirect.com", "web", secured(routev1.TLSConfig{Termination: "edge", InsecureEdgeTerminationPolicy: "Redirect"}))
	b.route("reencrypt", "reencrypt.com", "tls", secured(routev1.TLSConfig{Termination: "reencrypt", DestinationCACertificate: text(t, b.authority.File)}))
	b.route("other", "other.com", "tls", secured(routev1.TLSConfig{Termination: "reencrypt", DestinationCACertificate: certificate}))
	b.route("passthrough", "passthrough.com", "tls", secured(routev1.TLSConfig{Termination: "passthrough", InsecureEdgeTerminationPolicy: "Redirect"}))
	b.route("passing", "any.sni.com", "tls", secured(routev1.TLSConfig{Termination: "passthrough"}), wild)
	b.route("ending", "one.sni.com", "web", secured(routev1.TLSConfig{Termination: "edge"}))
	b.route("empty", "empty.com", "nobody")
	b.route("zero", "zero.com", "web", func(r *routev1.Route) { r.Spec.To.Weight = ptr.To[int32](0) })
	b.run()
	for url, want := range map[string]string{
		"http://plain.com": "web", "http://PLAIN.com:80/x": "web", "http://plain.com/testing": "web", "http://plain.com/": "web",
		"http://plain.com/test": "web", "http://plain.com/test?q=/": "web", "http://plain.com/test/x": "test", "http://plain.com/test/deep": "test",
		"http://plain.com/test/deep/": "deep", "http://plain.com/test/deep/er": "deep", "http://plain.com//test": "web",
		"http://plain.com/only": "deep", "http://plain.com/only?q": "deep", "http://plain.com/only/": "web", "http://plain.com/only/x": "web", "http://root.com/": "test", "http://root.com/x": "503",
		"http://a.wild.com/x": "web", "http://one.wild.com/only": "test", "http://one.wild.com/": "web", "http://a.b.wild.com": "503", "http://wild.com": "503",
		"https://edge.com/x": "web", "http://edge.com": "503", "https://allow.com": "web", "http://allow.com": "web",
		"https://redirect.com": "web", "http://redirect.com": "302", "https://reencrypt.com": "tls", "http://reencrypt.com": "503", "https://other.com": "503",
		"https://passthrough.com": "tls", "http://passthrough.com": "302", "https://two.sni.com": "tls", "https://one.sni.com": "web",
		"http://empty.com": "503", "http://zero.com": "503",
		"http://nobody.com": "503", "https://nobody.com": "503", "https://plain.com": "503",
	} {
		b.until(url, want)
	}
	if _, _, header := b.get("http://redirect.com/a?b=c"); header.Get("Location") != "https://redirect.com/a?b=c" {
		t.Errorf("HTTP redirects to %q", header.Get("Location"))
	}
	_, body, header := b.get("https://allow.com/some/path")
	if body != "web allow.com/some/path HTTP/1.1" || header.Get("Got-X-Forwarded-Proto") != "https" || header.Get("Got-X-Forwarded-For") != "127.0.0.1" ||
		header.Get("Got-X-Forwarded-Host") != "allow.com" || header.Get("Got-Forwarded") != "for=127.0.0.1;host=allow.com;proto=https" {
		t.Errorf("the pod receives %q with %v", body, header)
	}
	for host, name := range map[string]string{"edge.com": "own", "allow.com": "default", "passthrough.com": "pod", "": "default"} {
		connection, err := tls.Dial("tcp", "127.0.0.1:"+b.writer.Settings.Text("ROUTER_SERVICE_HTTPS_PORT"), &tls.Config{ServerName: host, InsecureSkipVerify: true})
		if err != nil {
			t.Errorf("TLS for %q: %v", host, err)
			continue
		}
		if got := connection.ConnectionState().PeerCertificates[0].Subject.CommonName; got != name {
			t.Errorf("the certificate for %q is that of %q, want %q", host, got, name)
		}
		connection.Close()
	}
}

func TestPodsAreVerifiedWithServiceCA(t *testing.T) {
	t.Parallel()
	// HAProxy also waits for this timeout between connection retries, so keep it short.
	b := newFixture(t, map[string]string{"ROUTER_DEFAULT_CONNECT_TIMEOUT": "300ms"})
	b.writer.ServiceCA = filepath.Join(b.writer.Dir, "services.crt")
	pair, another := b.authority.Issue(t, "pod", "mine.shop.svc"), b.authority.Issue(t, "pod", "another.shop.svc")
	foreign := certtest.New(t).Issue(t, "pod", "foreign.shop.svc")
	b.pod("mine", "mine", &pair)
	b.pod("impostor", "impostor", &another)
	b.pod("foreign", "foreign", &foreign)
	for _, name := range []string{"mine", "impostor", "foreign"} {
		b.route(name, name+".com", name, secured(routev1.TLSConfig{Termination: "reencrypt"}))
	}
	b.run()
	for _, name := range []string{"mine", "impostor", "foreign"} { // there is no CA file yet
		b.until("https://"+name+".com", name)
	}
	if err := os.WriteFile(b.writer.ServiceCA, []byte(text(t, b.authority.File)), 0o600); err != nil {
		t.Fatal(err)
	}
	b.apply()
	b.until("https://impostor.com", "503")
	for name, want := range map[string]string{"mine": "mine", "impostor": "503", "foreign": "503"} {
		b.until("https://"+name+".com", want)
	}
}

func TestDamagedServiceCAKeepsPreviousAuthorities(t *testing.T) {
	t.Parallel()
	for _, good := range []bool{true, false} { // test both valid and invalid previous values
		b := newFixture(t, map[string]string{"ROUTER_DEFAULT_CONNECT_TIMEOUT": "300ms"})
		b.writer.ServiceCA = filepath.Join(b.writer.Dir, "services.crt")
		pair := b.authority.Issue(t, "pod", "mine.shop.svc")
		b.pod("mine", "mine", &pair)
		b.pod("web", "web", nil)
		b.route("mine", "mine.com", "mine", secured(routev1.TLSConfig{Termination: "reencrypt"}))
		content, want := "damaged", "503"
		if good {
			content, want = text(t, b.authority.File), "mine"
		}
		if err := os.WriteFile(b.writer.ServiceCA, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		b.run()
		b.until("https://mine.com", want)
		if err := os.WriteFile(b.writer.ServiceCA, []byte("-----BEGIN CERTIFICATE-----"), 0o600); err != nil {
			t.Fatal(err)
		}
		b.route("web", "web.com", "web")
		b.apply()
		b.until("http://web.com", "web")
		if got := b.who("https://mine.com"); got != want {
			t.Errorf("with damaged authorities, valid before: %t, the response is %s, want %s", good, got, want)
		}
	}
}

func TestWeightsShareRequests(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("a", "a", nil)
	b.pod("a", "a", nil)
	b.pod("b", "b", nil)
	b.pod("c", "c", nil)
	b.route("ab", "ab.com", "a", annotated(annotationBalance, "roundrobin", "haproxy.router.openshift.io/disable_cookies", "true"), func(r *routev1.Route) {
		r.Spec.To.Weight = ptr.To[int32](20)
		r.Spec.AlternateBackends = []routev1.RouteTargetReference{{Name: "b", Weight: ptr.To[int32](10)}, {Name: "c", Weight: ptr.To[int32](10)}, {Name: "gone", Weight: ptr.To[int32](200)}}
	})
	b.run()
	counts := map[string]int{}
	for range 80 {
		counts[b.who("http://ab.com")]++
	}
	if counts["a"] < 38 || counts["a"] > 42 || counts["b"] < 18 || counts["b"] > 22 || counts["a"]+counts["b"]+counts["c"] != 80 {
		t.Errorf("80 requests are distributed as %v", counts)
	}
}
