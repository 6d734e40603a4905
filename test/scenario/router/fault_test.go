package router

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/test/kit"
)

// apply creates a route.
func apply(t *testing.T, c *kit.Cluster, name, service string, change func(*routev1.RouteSpec)) {
	t.Helper()
	route := routev1.Route{TypeMeta: metav1.TypeMeta{APIVersion: routev1.GroupVersion.String(), Kind: "Route"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	route.Spec = routev1.RouteSpec{Host: name + ".faults.example.com", To: routev1.RouteTargetReference{Kind: "Service", Name: service}}
	change(&route.Spec)
	text, err := json.Marshal(route)
	if err != nil {
		t.Fatal(err)
	}
	c.Apply(string(text))
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// page returns the common name in the certificate that the router presents for a host.
func page(t *testing.T, c *kit.Cluster, host string) string {
	t.Helper()
	connection, err := c.Dial(t.Context(), "tcp", "127.0.0.1:443")
	if err != nil {
		return err.Error()
	}
	defer connection.Close()
	secure := tls.Client(connection, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	if err := secure.HandshakeContext(t.Context()); err != nil {
		return err.Error()
	}
	return secure.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestInvalidCertificatesAffectOnlyTheirRoutes(t *testing.T) {
	c := kit.Shared(t)
	authority, stranger := certtest.New(t), certtest.New(t)
	good, other := authority.Issue(t, "good", "good.faults.example.com"), authority.Issue(t, "other", "other.example.com")
	expired := authority.IssueExpired(t, "expired.faults.example.com")
	c.OC("create", "secret", "tls", "inner", "--cert="+good.CertFile, "--key="+good.KeyFile)
	host, port := serveTLS(t, c, "inner")
	c.Apply(fmt.Sprintf(outside, "inner", host, port, ""))

	edge := func(certificate, key string) func(*routev1.RouteSpec) {
		return func(s *routev1.RouteSpec) {
			s.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationReencrypt, Certificate: certificate, Key: key, DestinationCACertificate: read(t, authority.File)}
		}
	}
	apply(t, c, "good", "inner", edge(read(t, good.CertFile), read(t, good.KeyFile)))
	apply(t, c, "expired", "inner", edge(read(t, expired.CertFile), read(t, expired.KeyFile)))
	apply(t, c, "other", "inner", edge(read(t, other.CertFile), read(t, other.KeyFile)))
	apply(t, c, "mismatched", "inner", edge(read(t, good.CertFile), read(t, other.KeyFile)))
	apply(t, c, "broken", "inner", edge("-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n", read(t, good.KeyFile)))
	apply(t, c, "text", "inner", edge("crt /etc/shadow\n\tbind :1", "no key"))
	apply(t, c, "untrusted", "inner", func(s *routev1.RouteSpec) {
		s.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationReencrypt, DestinationCACertificate: read(t, stranger.File)}
	})
	for _, tt := range []struct {
		name, status, certificate string
		response                  int
	}{
		// The router admits the first two certificates, because clients decide whether to trust
		// them.
		{"expired", "public:True", "expired.faults.example.com", http.StatusOK},
		{"other", "public:True", "other", http.StatusOK},
		{"mismatched", "public:False/ExtendedValidationFailed", "", http.StatusServiceUnavailable},
		{"broken", "public:False/ExtendedValidationFailed", "", http.StatusServiceUnavailable},
		{"text", "public:False/ExtendedValidationFailed", "", http.StatusServiceUnavailable},
		{"untrusted", "public:True", "", http.StatusServiceUnavailable},
		{"good", "public:True", "good", http.StatusOK},
	} {
		name := tt.name + ".faults.example.com"
		eventually.Equal(t, "status of "+name, func() string { return decision(c, tt.name) }, tt.status)
		eventually.Equal(t, "response of "+name, func() int { status, _ := fetch(c, 443, name); return status }, tt.response)
		if tt.certificate != "" {
			eventually.Equal(t, "certificate of "+name, func() string { return page(t, c, name) }, tt.certificate)
		}
	}
}

// Requests that are in flight on a killed process can fail. No other request may fail, and the
// router must recover.
func TestRouterRecoversFromKillsUnderLoad(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(fmt.Sprintf(site, "kills", "alive"))
	c.Apply(fmt.Sprintf(route, "kills", "", "kills.example.com", "kills"))
	serves(t, c, 80, "kills.example.com", "alive")
	c.OC("rollout", "status", "deployment/kills", "--timeout=120s")

	stop := load(c, "kills.example.com")
	c.Kill("control-plane")
	eventually.True(t, "the API to be available again", func() bool { _, err := c.TryOC("get", "route", "kills"); return err == nil })
	if failures := stop(); len(failures) > 0 {
		t.Errorf("%d requests failed without the control plane, the first with: %s", len(failures), failures[0])
	}

	processes, err := c.Processes()
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, process := range processes {
		if process.Program() == "haproxy" && syscall.Kill(process.PID, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Fatalf("HAProxy is not among %v", processes)
	}
	serves(t, c, 80, "kills.example.com", "alive")

	stop = load(c, "kills.example.com")
	pods, err := c.Client.CoreV1().Pods(c.Namespace).List(context.Background(), metav1.ListOptions{LabelSelector: "app=kills"})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("the application has no pods (%v)", err)
	}
	c.OC("delete", "pod", pods.Items[0].Name, "--force", "--grace-period=0")
	c.OC("rollout", "status", "deployment/kills", "--timeout=120s")
	// Each client may lose one request that the killed pod was processing, and one request that was
	// in flight to the pod.
	if failures := stop(); len(failures) > 2*loaders {
		t.Errorf("%d requests failed when a pod was killed, with %d concurrent requests, the first with: %s", len(failures), loaders, failures[0])
	}
}
