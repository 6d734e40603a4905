package requestheader

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/oauth/idp"
)

func TestHeadersAreTrustedFromProxyOnly(t *testing.T) {
	authority, other := certtest.New(t), certtest.New(t)
	provider := &Provider{
		Authorities: authority.Pool(), CommonNames: []string{"proxy"}, Headers: []string{"X-Remote-User", "SSO-User"},
		PreferredUserNameHeaders: []string{"X-Preferred"}, NameHeaders: []string{"X-Name"}, EmailHeaders: []string{"X-Mail"},
	}
	all := http.Header{"Sso-User": {"4711"}, "X-Preferred": {"alice"}, "X-Name": {"Alice A."}, "X-Mail": {"a@example.com"}}
	want := &idp.Identity{UserName: "4711", PreferredUserName: "alice", Name: "Alice A.", Email: "a@example.com"}
	tests := []struct {
		name        string
		headers     http.Header
		certificate *x509.Certificate
		want        *idp.Identity
	}{
		{"the proxy", all, authority.Issue(t, "proxy").Certificate, want},
		{"no certificate", all, nil, nil},
		{"a certificate of another CA", all, other.Issue(t, "proxy").Certificate, nil},
		{"another client of the CA", all, authority.Issue(t, "bob").Certificate, nil},
		{"no name", http.Header{"X-Name": {"Alice"}}, authority.Issue(t, "proxy").Certificate, nil},
		{"a blank name", http.Header{"X-Remote-User": {"  "}}, authority.Issue(t, "proxy").Certificate, nil},
		{"the header of another provider", http.Header{"X-Remote-Users": {"root"}}, authority.Issue(t, "proxy").Certificate, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/oauth/authorize", nil)
			r.Header, r.TLS = tt.headers, &tls.ConnectionState{}
			if tt.certificate != nil {
				r.TLS.PeerCertificates = []*x509.Certificate{tt.certificate}
			}
			got, err := provider.AuthenticateRequest(r)
			if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != (tt.want == nil) || err != nil && !errors.Is(err, idp.ErrRefused) {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestProxyURLsAreExpanded(t *testing.T) {
	present, err := url.Parse("https://master/oauth/authorize?client_id=a&state=b%20c")
	if err != nil {
		t.Fatal(err)
	}
	provider := &Provider{Login: "https://proxy/login?then=${url}", Challenge: "https://proxy/challenge?${query}"}
	if got := provider.LoginURL(present); got != "https://proxy/login?then=https%3A%2F%2Fmaster%2Foauth%2Fauthorize%3Fclient_id%3Da%26state%3Db%2520c" {
		t.Error(got)
	}
	if got := provider.ChallengeURL(present); got != "https://proxy/challenge?client_id=a&state=b%20c" {
		t.Error(got)
	}
	if (&Provider{}).LoginURL(present) != "" {
		t.Error("a proxy without a configured URL returns one")
	}
}
