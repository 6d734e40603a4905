package hosts

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/pki"
)

func TestCertificatesOfRemovedHostsAreVoid(t *testing.T) {
	f := newFixture(t)
	hour := func(count time.Duration) metav1.Time {
		return metav1.Time{Time: time.Now().Add(count * time.Hour).Truncate(time.Second)}
	}
	removed := hour(-3)
	for name, joined := range map[string]metav1.Time{"removed": hour(-4), "second": hour(-2), "master": {}} {
		if err := f.register.change(t.Context(), name, func(h *Host) { h.Joined, h.Removed = joined, &removed }); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.register.change(t.Context(), "third", func(h *Host) { h.Joined = removed }); err != nil {
		t.Fatal(err)
	}
	node := func(name string) pkix.Name { return pkix.Name{CommonName: "system:node:" + name} }
	component := func(name string) pkix.Name {
		return pkix.Name{CommonName: "system:kube-proxy", OrganizationalUnit: []string{"system:node:" + name}}
	}
	before, between, after := removed.Add(-time.Minute), removed.Add(time.Minute), time.Now()
	for name, tt := range map[string]struct {
		subject pkix.Name
		issued  time.Time
		want    int
	}{
		"removed node, before":                 {node("removed"), before, http.StatusUnauthorized},
		"removed node, issued after":           {node("removed"), between, http.StatusUnauthorized},
		"component of removed node":            {component("removed"), after, http.StatusUnauthorized},
		"node that joined again, before":       {node("second"), before, http.StatusUnauthorized},
		"node that joined again, between":      {node("second"), between, http.StatusUnauthorized},
		"node that joined again, after":        {node("second"), after, http.StatusOK},
		"component that joined again, between": {component("second"), between, http.StatusUnauthorized},
		"component that joined again, after":   {component("second"), after, http.StatusOK},
		"node that joined again, at that time": {node("second"), hour(-2).Time, http.StatusOK},
		"node of this host":                    {node("master"), before, http.StatusOK},
		"host without removal":                 {node("third"), before, http.StatusOK},
		"host without entry":                   {node("fourth"), before, http.StatusOK},
		"other user":                           {pkix.Name{CommonName: "removed"}, before, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			if got := f.guard().request(t, f.issue(t, tt.subject, tt.issued)); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func (f fixture) guard() *guard {
	return &guard{register: f.register, ownNode: "master", authority: func() ([]byte, error) { return f.authority, nil }}
}

// TestForgedCertificateDoesNotCauseReads sends requests with certificates that anyone can create.
func TestForgedCertificateDoesNotCauseReads(t *testing.T) {
	f := newFixture(t)
	removed := now()
	if err := f.register.change(t.Context(), "second", func(h *Host) { h.Removed = &removed }); err != nil {
		t.Fatal(err)
	}
	g := f.guard()
	subject := pkix.Name{CommonName: "system:node:second"}
	// This request reads the register for the first time.
	g.request(t, newCertificate(t, subject, time.Now()))
	g.checked = time.Now() // the guard's copy is now up to date
	client := f.client.(*fake.Clientset)
	client.ClearActions()
	for range 3 {
		if got := g.request(t, newCertificate(t, subject, time.Now())); got != http.StatusUnauthorized {
			t.Errorf("a forged certificate of a removed host returns %d", got)
		}
	}
	if actions := client.Actions(); len(actions) > 0 {
		t.Errorf("forged certificates cause %d requests", len(actions))
	}
	g.request(t, f.issue(t, subject, time.Now()))
	if actions := client.Actions(); len(actions) != 1 {
		t.Errorf("a certificate of the cluster causes %d requests, want 1", len(actions))
	}
}

// request sends a request with a certificate through the guard and returns the status code.
func (g *guard) request(t *testing.T, cert *x509.Certificate) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	recorder := httptest.NewRecorder()
	g.filter(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(recorder, r)
	return recorder.Code
}

func TestHostThatJoinsAgainIsAcceptedImmediately(t *testing.T) {
	f := newFixture(t)
	removed := metav1.Time{Time: time.Now().Add(-time.Hour).Truncate(time.Second)}
	if err := f.register.change(t.Context(), "second", func(h *Host) { h.Removed = &removed }); err != nil {
		t.Fatal(err)
	}
	g := f.guard()
	cert := f.issue(t, pkix.Name{CommonName: "system:node:second"}, time.Now())
	if got := g.request(t, cert); got != http.StatusUnauthorized {
		t.Errorf("the response to a removed host is %d", got)
	}
	if err := f.register.change(t.Context(), "second", func(h *Host) { h.Joined = now() }); err != nil {
		t.Fatal(err)
	}
	if got := g.request(t, f.issue(t, cert.Subject, time.Now())); got != http.StatusOK {
		t.Errorf("the response after the join is %d", got)
	}
}

// TestMasterThatJoinsAgainIsAccepted uses the certificate that a master issues for its own node.
func TestMasterThatJoinsAgainIsAccepted(t *testing.T) {
	f, dir := newFixture(t), t.TempDir()
	removed := metav1.Time{Time: time.Now().Add(-time.Minute).Truncate(time.Second)}
	if err := f.register.change(t.Context(), "second", func(h *Host) { h.Removed, h.Joined = &removed, now() }); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.Ensure(pki.Spec{
		Dir: filepath.Join(dir, "pki"), AdminKubeconfig: filepath.Join(dir, "admin.kubeconfig"), NodeName: "second",
		APIHosts: []string{"192.0.2.1"}, APIURL: "https://192.0.2.1:8443", LoopbackURL: "https://127.0.0.1:8443", NodeHosts: []string{"192.0.2.1"},
	}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "pki", "node", "node.crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(content)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.guard().request(t, cert); got != http.StatusOK {
		t.Errorf("the response to a master that joined again is %d", got)
	}
}

// TestWatchesOfRemovedHostEnd removes a host while it watches. The next request from the API
// server's own node or from another host ends the watch.
func TestWatchesOfRemovedHostEnd(t *testing.T) {
	for _, other := range []string{"master", "third"} {
		t.Run("request of "+other, func(t *testing.T) {
			f := newFixture(t)
			g := f.guard()
			started := make(chan struct{})
			handler := g.filter(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(started)
				<-r.Context().Done()
			}))
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods?watch=true", http.NoBody)
			request.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{f.issue(t, pkix.Name{CommonName: "system:node:second"}, time.Now())}}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				handler.ServeHTTP(httptest.NewRecorder(), request)
			}()
			<-started
			removed := now()
			if err := f.register.change(t.Context(), "second", func(h *Host) { h.Removed = &removed }); err != nil {
				t.Fatal(err)
			}
			g.mu.Lock()
			g.checked = time.Time{} // the guard's copy is now outdated
			g.mu.Unlock()
			g.request(t, f.issue(t, pkix.Name{CommonName: "system:node:" + other}, time.Now()))
			<-ended
			if len(g.watches) > 0 {
				t.Errorf("%d watches remain", len(g.watches))
			}
		})
	}
}
