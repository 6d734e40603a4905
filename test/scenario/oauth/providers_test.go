package oauth

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/test/kit"
)

// TestUsersOfEveryProviderLogIn uses a cluster with one identity provider of each kind. It also
// changes the configuration while the cluster runs.
func TestUsersOfEveryProviderLogIn(t *testing.T) {
	c := kit.New(t, kit.Options{})
	b := build(t, c)
	address := b.freeAddress()
	b.proxy = "https://" + address
	policy := b.file("policy.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n")
	b.audit = "auditConfig: {enabled: true, policyFile: " + policy + "}\ncorsAllowedOrigins: ['pages\\.example\\.com']"
	b.write(b.providers(), b.audit)
	c.Up()
	b.startProxy(address)
	for _, step := range []struct {
		name string
		run  func(*testing.T, *fixture, *server)
	}{
		{"pages of other sites", otherPages},
		{"passwords", passwords},
		{"other servers", otherServers},
		{"proxy", throughProxy},
		{"service accounts", serviceAccounts},
		{"expiry", checkExpiry},
		{"reloads", reloads},
		{"restarts", restarts},
	} {
		t.Run(step.name, func(t *testing.T) { step.run(t, b, at(t, c.For(t))) })
	}
}

func otherPages(t *testing.T, _ *fixture, s *server) {
	for origin, want := range map[string]string{"https://pages.example.com:9443": "https://pages.example.com:9443", "https://pages.example.com.example.org": ""} {
		got := s.do(s.browser(), http.MethodGet, "/version", nil, func(r *http.Request) { r.Header.Set("Origin", origin) })
		if allowed := got.Header.Get("Access-Control-Allow-Origin"); allowed != want {
			t.Errorf("a page of %s: allowed is %q", origin, allowed)
		}
	}
}

// self is the user object that the API server returns for a token.
type self struct {
	Metadata   struct{ Name, UID string }
	FullName   string
	Identities []string
}

func (s *server) self(token string) (user self) {
	s.t.Helper()
	got := s.do(s.browser(), http.MethodGet, "/apis/user.openshift.io/v1/users/~", nil, bearer(token))
	if err := json.Unmarshal([]byte(got.body), &user); err != nil || got.StatusCode != http.StatusOK {
		s.t.Errorf("%s with the token: %s", got.Status, got.body)
	}
	return user
}

// passwords logs in through the providers that check passwords, both with `oc login` and on the
// providers' login pages.
func passwords(t *testing.T, _ *fixture, s *server) {
	for _, c := range []struct{ provider, user, password, identity string }{
		{"file", "developer", s.DeveloperPassword(), "file:developer"},
		{"ldap", "alice", "secret", "ldap:cn=Alice A.,ou=people,dc=example,dc=com"},
		{"remote", "carol", "secret", "remote:4712"},
	} {
		if user := s.self(s.token(c.user, c.password)); user.Metadata.Name != c.user || !slices.Equal(user.Identities, []string{c.identity}) {
			t.Errorf("provider %s: the user of oc login is %+v", c.provider, user)
		}
		browser := s.browser()
		if back := s.form(browser, c.provider, c.user, c.password).location(t); back.Path != "/oauth/authorize" {
			t.Errorf("provider %s: the page redirects to %s", c.provider, back)
		}
		if user := s.self(s.tokenOf(browser)); user.Metadata.Name != c.user {
			t.Errorf("provider %s: the user of the page is %+v", c.provider, user)
		}
		if back := s.form(s.browser(), c.provider, c.user, c.password+"x").location(t); back.Query().Get("reason") != "access_denied" {
			t.Errorf("provider %s: a wrong password redirects to %s", c.provider, back)
		}
	}
	if got := s.do(s.browser(), http.MethodGet, implicit, nil, basic("alice", "wrong")); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("a password that no provider accepts: %s", got.Status)
	}
	if back := s.form(s.browser(), "nobody", "alice", "secret").location(t); back.Query().Get("reason") != "access_denied" {
		t.Errorf("the provider DenyAll redirects to %s", back)
	}
	metrics := s.OC("get", "--raw", "/metrics")
	for _, metric := range []string{
		`openshift_auth_basic_password_count_result{result="error"} `, `openshift_auth_basic_password_count_result{result="success"} `,
		`openshift_auth_form_password_count_result{result="error"} `, `openshift_auth_form_password_count_result{result="success"} `, "openshift_auth_password_total ",
	} {
		if _, value, ok := strings.Cut(metrics, "\n"+metric); !ok || strings.HasPrefix(value, "0") {
			t.Errorf("the metrics lack %s", metric)
		}
	}
	// With the lookup mapping method, an administrator must create the user, the identity and the
	// mapping.
	if back := s.form(s.browser(), "keystone", "erin", "secret").location(t); back.Query().Get("reason") != "mapping_lookup_error" {
		t.Errorf("a user without a mapping is redirected to %s", back)
	}
	s.OC("create", "user", "erika")
	s.OC("create", "identity", "keystone:erin")
	s.OC("create", "useridentitymapping", "keystone:erin", "erika")
	if user := s.self(s.token("erin", "secret")); user.Metadata.Name != "erika" {
		t.Errorf("the user of the mapping is %+v", user)
	}
}

// otherServers logs in through the providers that redirect the browser. The user alice already
// exists, and is mapped to Alice in LDAP.
func otherServers(t *testing.T, b *fixture, s *server) {
	choices := s.do(s.browser(), http.MethodGet, "/oauth/authorize?client_id=openshift-browser-client&response_type=code", nil, nil)
	for _, name := range []string{"/login/github?", "/login/gitlab?", "/login/openid?", b.proxy + "/login-proxy/oauth/authorize?"} {
		if !strings.Contains(choices.body, name) {
			t.Errorf("the page of providers lacks %s: %s", name, choices.body)
		}
	}
	back := s.visit(s.browser(), b.github, "github")
	if got := s.do(s.browser(), http.MethodGet, back, nil, nil); got.StatusCode != http.StatusBadRequest {
		t.Errorf("a user who returns in another browser: %s", got.Status)
	}
	client := s.browser()
	if got := s.do(client, http.MethodGet, s.visit(client, b.github, "github"), nil, nil); got.StatusCode != http.StatusForbidden || !strings.Contains(got.body, "belongs to another identity") {
		t.Errorf("claim of a name that is taken: %s, %s", got.Status, got.body)
	}
	for _, c := range []struct {
		provider string
		server   *httptest.Server
		user     string
	}{{"gitlab", b.gitlab, "alice2"}, {"openid", b.openid, "alice"}} {
		browser := s.browser()
		if got := s.do(browser, http.MethodGet, s.visit(browser, c.server, c.provider), nil, nil); got.StatusCode != http.StatusFound {
			t.Fatalf("provider %s: %s, %s", c.provider, got.Status, got.body)
		}
		user := s.self(s.tokenOf(browser))
		if user.Metadata.Name != c.user || !slices.Contains(user.Identities, c.provider+":4711") {
			t.Errorf("provider %s: the user is %+v", c.provider, user)
		}
	}
	s.OC("delete", "user", "alice")
	s.OC("delete", "identity", "ldap:cn=Alice A.,ou=people,dc=example,dc=com", "openid:4711")
	free := s.browser()
	s.do(free, http.MethodGet, s.visit(free, b.github, "github"), nil, nil)
	if user := s.self(s.tokenOf(free)); user.Metadata.Name != "alice" || user.FullName != "Alice A." || !slices.Equal(user.Identities, []string{"github:12"}) {
		t.Errorf("claim of a name that is free: %+v", user)
	}
}

// throughProxy logs in through the proxy, which passes the authenticated user's name in a header.
func throughProxy(t *testing.T, b *fixture, s *server) {
	challenge := s.do(s.browser(), http.MethodGet, implicit, nil, nil).location(t)
	if !strings.HasPrefix(challenge.String(), b.proxy+"/challenging-proxy/oauth/authorize?") {
		t.Fatalf("a program is redirected to %s", challenge)
	}
	outside := s.browser()
	trust(outside, b.proxyCA.Certificate)
	if got := s.do(outside, http.MethodGet, challenge.String(), nil, nil); got.StatusCode != http.StatusUnauthorized || got.Header.Get("WWW-Authenticate") != `Basic realm="proxy"` {
		t.Errorf("challenge of the proxy: %s, %q", got.Status, got.Header.Get("WWW-Authenticate"))
	}
	dave := func(r *http.Request) {
		r.SetBasicAuth("dave", "secret")
		r.Header.Set("X-Remote-User", "root")
	}
	got := s.do(outside, http.MethodGet, challenge.String(), nil, dave)
	fragment, _ := url.ParseQuery(got.location(t).Fragment)
	if user := s.self(fragment.Get("access_token")); user.Metadata.Name != "dave" || !slices.Equal(user.Identities, []string{"proxy:dave"}) {
		t.Errorf("user of the proxy: %+v", user)
	}
	// As in the guide, the client receives a code after the proxy has authenticated the user. The
	// client then exchanges the code directly with the master.
	page := s.do(outside, http.MethodGet, b.proxy+"/login-proxy/oauth/authorize?client_id=openshift-browser-client&response_type=code", nil, dave).location(t)
	if page.Path != "/oauth/token/display" || page.Query().Get("code") == "" {
		t.Errorf("the code is sent to %s", page)
	}
	// The master must ignore the header from any client that is not the proxy, regardless of the
	// client's certificate.
	for name, pair := range map[string]*certtest.Pair{
		"no certificate": nil, "another client certificate of the CA": new(b.proxyCA.Issue(t, "bob")), "certificate of another CA": new(certtest.New(t).Issue(t, "proxy")),
	} {
		client := s.browser()
		if pair != nil {
			show(t, client, *pair)
		}
		spoofed := s.do(client, http.MethodGet, implicit, nil, func(r *http.Request) { r.Header.Set("X-Remote-User", "root") })
		if address, _ := spoofed.Location(); address != nil && address.Fragment != "" {
			t.Errorf("%s: the header is trusted: %s", name, address)
		}
	}
}

// form logs in on a provider's login page, and returns the response.
func (s *server) form(browser *http.Client, provider, user, password string) reply {
	s.t.Helper()
	form := s.do(browser, http.MethodGet, "/login/"+provider+"?"+url.Values{"then": {implicit}}.Encode(), nil, nil).fields()
	form.Set("username", user)
	form.Set("password", password)
	return s.do(browser, http.MethodPost, "/login/"+provider, form, nil)
}

// tokenOf requests a token with the session of the user who is logged in with browser.
func (s *server) tokenOf(browser *http.Client) string {
	s.t.Helper()
	got := s.do(browser, http.MethodGet, "/oauth/authorize?client_id=openshift-browser-client&response_type=token", nil, nil)
	values, err := url.ParseQuery(got.location(s.t).Fragment)
	if err != nil || values.Get("access_token") == "" {
		s.t.Errorf("no token for the session: %s, %s", got.Status, got.Header.Get("Location"))
	}
	return values.Get("access_token")
}

// visit starts a login at a provider's server, which accepts every user. It returns the server's
// redirect back to Slipway.
func (s *server) visit(browser *http.Client, server *httptest.Server, provider string) string {
	s.t.Helper()
	start := s.do(browser, http.MethodGet, "/login/"+provider+"?"+url.Values{"then": {implicit}}.Encode(), nil, nil).location(s.t)
	outside := s.browser()
	trust(outside, server.Certificate())
	return s.do(outside, http.MethodGet, start.String(), nil, nil).location(s.t).String()
}

// trust makes a browser trust an additional CA.
func trust(browser *http.Client, authority *x509.Certificate) {
	browser.Transport.(*http.Transport).TLSClientConfig.RootCAs.AddCert(authority)
}

// show makes a browser present a client certificate.
func show(t *testing.T, browser *http.Client, pair certtest.Pair) {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	// Present the certificate even if the server requests certificates from other CAs.
	browser.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
}
