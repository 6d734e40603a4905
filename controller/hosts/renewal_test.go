package hosts

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/pki/join"
)

// addHost adds a joined host and its node.
func (f fixture) addHost(t *testing.T, name string, host Host) {
	t.Helper()
	if err := f.register.change(t.Context(), name, func(h *Host) { *h = host }); err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host.Address}}}}
	if _, err := f.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestTokenForNodeRenewsItsCertificates(t *testing.T) {
	joined := metav1.NewTime(time.Now().Add(-time.Hour))
	removed := metav1.NewTime(time.Now().Add(-time.Minute))
	for name, tt := range map[string]struct {
		host Host
		node string
		want string
	}{
		"node of the token":       {Host{Address: "192.0.2.2", Joined: joined, Token: "former", Group: "compute"}, "second", ""},
		"has joined just now":     {Host{Address: "192.0.2.2", Joined: now(), Token: "former"}, "second", ""},
		"has had another address": {Host{Address: "192.0.2.9", Joined: joined, Token: "former"}, "second", ""},
		"another node":            {Host{Address: "192.0.2.2", Joined: joined}, "third", "the token is for the host third"},
		"removed host":            {Host{Address: "192.0.2.2", Joined: joined, Removed: &removed}, "second", "the cluster has no host second"},
		"master":                  {Host{Address: "192.0.2.2", Joined: joined, Role: join.RoleMaster}, "second", "second is a master"},
		"restored without host":   {Host{}, "second", "the cluster has no host second"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.addHost(t, "second", tt.host)
			token := f.createTokenWith(t, TokenInfo{Role: join.RoleNode, Uses: 1, Expiry: time.Now().Add(time.Hour), Node: tt.node})
			code, body := f.send(t, requestFor(token))
			if tt.want != "" {
				if code != http.StatusForbidden || !strings.Contains(body, tt.want) {
					t.Errorf("got %d %q, want %q", code, body, tt.want)
				}
				return
			}
			if code != http.StatusOK {
				t.Fatalf("got %d %q", code, body)
			}
			hosts, err := f.register.read(t.Context())
			if err != nil || hosts["second"].Address != "192.0.2.2" || hosts["second"].Group != tt.host.Group || hosts["second"].Token != token.ID {
				t.Errorf("the register contains %+v, %v", hosts, err)
			}
			request := newRequest(t, x509.CertificateRequest{Subject: pkix.Name{CommonName: userOfNode + "second", Organization: []string{groupOfNodes}}})
			request.Spec.SignerName, request.Spec.Username, request.Spec.Groups = kubeletClient, join.UserPrefix+token.ID, []string{join.Group}
			a := approver{client: f.client, tokens: f.tokens, register: f.register}
			if reason, err := a.reason(t.Context(), request, parse(request.Spec.Request)); err != nil || !strings.Contains(reason, token.ID) {
				t.Errorf("the certificate is approved because of %q, %v", reason, err)
			}
			if approved, err := f.tokens.approve(t.Context(), token.ID, "second", "another", false); approved || err != nil {
				t.Errorf("a second certificate is approved: %t, %v", approved, err)
			}
		})
	}
}

func TestTokenIsNotCreatedForUnknownNode(t *testing.T) {
	f := newFixture(t)
	if err := CheckNode(t.Context(), f.client, "second"); err == nil || !strings.Contains(err.Error(), "the cluster has no host second") {
		t.Errorf("got %v", err)
	}
	f.addHost(t, "second", Host{Joined: now()})
	if err := CheckNode(t.Context(), f.client, "second"); err != nil {
		t.Error(err)
	}
}

func TestJoinedHostIdentifiesItselfByCertificate(t *testing.T) {
	f := newFixture(t)
	f.addHost(t, "second", Host{Address: "192.0.2.2", Joined: now()})
	f.addHost(t, "former", Host{Joined: metav1.NewTime(time.Now().Add(-time.Hour)), Removed: new(now())})
	subject := func(name, group string) pkix.Name {
		return pkix.Name{CommonName: userOfNode + name, Organization: []string{group}}
	}
	for name, tt := range map[string]struct {
		cert *x509.Certificate
		node string
		code int
	}{
		"own certificate":      {f.issue(t, subject("second", groupOfNodes), time.Now()), "second", http.StatusOK},
		"no certificate":       {nil, "second", http.StatusForbidden},
		"another node":         {f.issue(t, subject("third", groupOfNodes), time.Now()), "second", http.StatusForbidden},
		"another group":        {f.issue(t, subject("second", "users"), time.Now()), "second", http.StatusForbidden},
		"self-signed":          {newCertificate(t, subject("second", groupOfNodes), time.Now()), "second", http.StatusForbidden},
		"unknown to cluster":   {f.issue(t, subject("third", groupOfNodes), time.Now()), "third", http.StatusForbidden},
		"removed from cluster": {f.issue(t, subject("former", groupOfNodes), time.Now()), "former", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(join.Request{NodeName: tt.node})
			if err != nil {
				t.Fatal(err)
			}
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, join.Path, bytes.NewReader(body))
			request.TLS = &tls.ConnectionState{}
			if tt.cert != nil {
				request.TLS.PeerCertificates = []*x509.Certificate{tt.cert}
			}
			recorder := httptest.NewRecorder()
			f.door().ServeHTTP(recorder, request)
			if recorder.Code != tt.code || tt.code == http.StatusOK && !strings.Contains(recorder.Body.String(), "192.0.2.1:8443") {
				t.Errorf("got %d %s", recorder.Code, recorder.Body)
			}
		})
	}
}
