package haproxy

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// of returns the TLS settings for an edge route that has its own certificate for a name.
func (b *fixture) of(name string) (config routev1.TLSConfig) {
	b.t.Helper()
	pair := b.authority.Issue(b.t, name)
	return routev1.TLSConfig{Termination: "edge", Certificate: text(b.t, pair.CertFile), Key: text(b.t, pair.KeyFile)}
}

// shown returns the name in the certificate that clients receive for a host.
func (b *fixture) shown(host string) string {
	connection, err := tls.Dial("tcp", "127.0.0.1:"+b.writer.Settings.Text("ROUTER_SERVICE_HTTPS_PORT"), &tls.Config{ServerName: host, InsecureSkipVerify: true})
	if err != nil {
		return err.Error()
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func (b *fixture) untilShown(host, want string) {
	b.t.Helper()
	eventually.Equal(b.t, "certificate for "+host, func() string { return b.shown(host) }, want)
}

func TestCertificatesChangeWithoutReload(t *testing.T) {
	t.Parallel()
	b := newFixture(t, map[string]string{"RELOAD_INTERVAL": "1h", "ROUTER_ENABLE_HTTP2": "true"})
	b.pod("web", "web", nil)
	inside := b.authority.Issue(t, "pod")
	b.pod("tls", "tls", &inside)
	b.route("first", "first.com", "web", secured(b.of("first")))
	b.route("only", "only.com", "web", secured(b.of("only")))
	b.run()
	b.untilShown("first.com", "first")
	b.route("next", "next.com", "web", secured(b.of("next")))
	b.route("below", "next.com/below", "web", secured(b.of("below")))
	b.route("wild", "any.wild.com", "web", secured(b.of("wild")), func(r *routev1.Route) { r.Spec.WildcardPolicy = routev1.WildcardPolicySubdomain })
	reencrypt := b.of("reencrypt")
	reencrypt.Termination, reencrypt.DestinationCACertificate = "reencrypt", text(t, b.authority.File)
	b.route("reencrypt", "reencrypt.com", "tls", secured(reencrypt))
	b.apply()
	for host, name := range map[string]string{"next.com": "next", "a.wild.com": "wild", "reencrypt.com": "reencrypt", "only.com": "only"} {
		b.untilShown(host, name)
	}
	b.until("https://next.com", "web")
	b.until("https://reencrypt.com", "tls")
	if response, err := b.client(nil).Get("https://next.com"); err != nil || response.ProtoMajor != 2 {
		t.Errorf("the response with a later certificate is %+v (%v)", response, err)
	}
	first, next := b.of("first again"), b.of("next again")
	b.routes["first"].Spec.TLS, b.routes["next"].Spec.TLS = &first, &next
	b.routes["only"].Spec.Host = "moved.com"
	b.apply()
	for host, name := range map[string]string{"first.com": "first again", "next.com": "next again", "moved.com": "only", "only.com": "default"} {
		b.untilShown(host, name)
	}
	key := filepath.Join(b.writer.Dir, certificateFile("shop:next"))
	eventually.True(t, "the file of the new key", func() bool {
		content, err := os.ReadFile(key)
		return err == nil && strings.Contains(string(content), "PRIVATE KEY")
	})
	delete(b.routes, "next")
	delete(b.routes, "wild")
	b.apply()
	b.untilShown("next.com", "below")
	b.untilShown("a.wild.com", "default")
	eventually.True(t, "removal of the key of a deleted route", func() bool {
		_, err := os.Stat(key)
		return os.IsNotExist(err)
	})
	pair := b.authority.Issue(t, "fresh default")
	b.writer.DefaultCertificate = []byte(text(t, pair.CertFile) + text(t, pair.KeyFile))
	b.apply()
	b.untilShown("nobody.com", "fresh default")
	b.untilShown("", "fresh default")
	b.untilShown("first.com", "first again")
	if got := b.reloaded(); got != 1 {
		t.Errorf("HAProxy was started %d times", got)
	}
}

func TestRejectedCertificateDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("web", "web", nil)
	b.run()
	b.route("bad", "bad.com", "web", secured(b.of("bad")))
	b.route("good", "good.com", "web", secured(b.of("good")))
	broken := *b.config()
	broken.Files = map[string][]byte{}
	for name, content := range b.config().Files {
		broken.Files[name] = content
	}
	broken.Files[certificateFile("shop:bad")] = []byte("-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n")
	b.engine.Set(&broken)
	b.untilShown("good.com", "good")
	if got := <-b.refused; len(got.routes) != 1 || got.routes[0] != "shop:bad" {
		t.Errorf("rejected: %v for %v", got.routes, got.reason)
	}
	delete(b.routes, "bad")
	b.apply()
	b.route("later", "later.com", "web", secured(b.of("later")))
	b.apply()
	b.untilShown("later.com", "later")
}

// HAProxy must reload. Otherwise, it keeps connections and sessions to pods that are no longer
// trusted.
func TestUntrustedPodsGetNoRequests(t *testing.T) {
	t.Parallel()
	// Set a short timeout, because it is also the delay between retries.
	b := newFixture(t, map[string]string{"ROUTER_DEFAULT_CONNECT_TIMEOUT": "300ms"})
	inside := b.authority.Issue(t, "pod")
	b.pod("tls", "tls", &inside)
	b.run()
	b.route("tls", "tls.com", "tls", secured(routev1.TLSConfig{Termination: "reencrypt", DestinationCACertificate: text(t, b.authority.File)}))
	b.apply()
	b.until("https://tls.com", "tls")
	b.routes["tls"].Spec.TLS.DestinationCACertificate = text(t, certtest.New(t).File)
	b.apply()
	b.until("https://tls.com", "503")
}

func TestLongCertificateIsServedAfterReload(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("web", "web", nil)
	b.run()
	long := b.of("long")
	for len(long.CACertificate) < maxSecretBytes {
		long.CACertificate += text(t, certtest.New(t).File)
	}
	b.route("long", "long.com", "web", secured(long))
	b.apply()
	b.untilShown("long.com", "long")
}
