package proxy

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/oauthtest"
)

// server is an API server whose OAuth server logs Alice in.
type server struct {
	oauthtest.Server
	url     string
	allowed bool
	review  map[string]any // the last one
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		_ = json.NewEncoder(w).Encode(map[string]string{"authorization_endpoint": s.url + "/oauth/authorize"})
	case "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		_ = json.NewDecoder(r.Body).Decode(&s.review)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": map[string]any{"allowed": s.allowed}})
	default:
		s.Server.ServeHTTP(w, r)
	}
}

// proxied is a proxy with an application that responds with its request's header.
type proxied struct {
	*server
	url     string
	browser *http.Client
}

func start(t *testing.T, args ...string) proxied {
	t.Helper()
	s := &server{Server: oauthtest.Server{
		Authorize: "/oauth/authorize", Token: "/oauth/token",
		API: map[string]any{"/apis/user.openshift.io/v1/users/~": map[string]any{"metadata": map[string]string{"name": "alice"}}},
	}}
	api := httptest.NewTLSServer(s)
	t.Cleanup(api.Close)
	s.url = api.URL
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"path": r.URL.RequestURI(), "header": r.Header, "host": r.Host})
	}))
	t.Cleanup(app.Close)
	authority := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := Parse(append([]string{
		"--https-address=", "--provider=openshift", "--upstream=" + app.URL, "--client-id=" + oauthtest.ClientID, "--client-secret=" + oauthtest.ClientSecret,
		"--cookie-secret=SECRET", "--openshift-api=" + api.URL, "--openshift-ca=" + authority,
	}, args...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	client, err := connect(settings)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := newHandler(settings, client)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewTLSServer(handler)
	t.Cleanup(proxy.Close)
	jar, _ := cookiejar.New(nil) // returns no error
	browser := proxy.Client()    // trusts the proxy's certificate
	trusted := browser.Transport.(*http.Transport).TLSClientConfig.RootCAs
	trusted.AddCert(api.Certificate())
	browser.Jar = jar
	return proxied{s, proxy.URL, browser}
}

// seen is what the application sees of a request.
type seen struct {
	Path, Host string
	Header     http.Header
}

// get requests a path, and returns what the application saw; ok is false if it saw nothing.
func (p proxied) get(t *testing.T, path string, header ...string) (status int, at *url.URL, app seen, ok bool) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, p.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Add(name, value)
	}
	response, err := p.browser.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	ok = json.NewDecoder(response.Body).Decode(&app) == nil
	return response.StatusCode, response.Request.URL, app, ok
}

func TestUserLogsInAndReachesApplication(t *testing.T) {
	p := start(t)
	_, _, app, ok := p.get(t, "/page?a=b", "X-Forwarded-User: mallory", "Cookie: app=1")
	if !ok || app.Path != "/page?a=b" || app.Header.Get(userHeader) != "alice" || app.Header.Get(emailHeader) != "alice@cluster.local" || p.url != "https://"+app.Host {
		t.Fatalf("after the login, the application sees %+v", app)
	}
	_, _, app, _ = p.get(t, "/again", "X-Forwarded-User: mallory", "X-Forwarded-Access-Token: forged", "Cookie: app=1")
	if app.Path != "/again" || app.Header.Get(userHeader) != "alice" || app.Header.Get(tokenHeader) != "" || app.Header.Get("Cookie") != "app=1" {
		t.Errorf("in the session, the application sees %+v", app)
	}
	p.get(t, signOutPath)
	p.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if status, _, app, ok := p.get(t, "/again"); status != http.StatusFound || ok {
		t.Errorf("after the logout: %d, the application sees %+v", status, app)
	}
}

func TestTokenIsPassedIfWanted(t *testing.T) {
	p := start(t, "--pass-access-token")
	if _, _, app, ok := p.get(t, "/"); !ok || app.Header.Get(tokenHeader) == "" {
		t.Errorf("the application sees %+v", app)
	}
}

func TestOnlyUsersWithAccessReachApplication(t *testing.T) {
	p := start(t, `--openshift-sar={"resource":"pods","namespace":"shop","verb":"get"}`)
	if status, _, _, ok := p.get(t, "/"); status != http.StatusForbidden || ok {
		t.Errorf("without access: %d", status)
	}
	attributes, _ := p.review["spec"].(map[string]any)["resourceAttributes"].(map[string]any)
	if attributes["resource"] != "pods" || attributes["namespace"] != "shop" {
		t.Errorf("the review is %v", p.review)
	}
	p.allowed = true
	if _, _, app, ok := p.get(t, "/"); !ok || app.Header.Get(userHeader) != "alice" {
		t.Errorf("with access, the application sees %+v", app)
	}
}

func TestOpenPathsNeedNoLogin(t *testing.T) {
	p := start(t, "--skip-auth-regex=^/open/")
	p.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if _, _, app, ok := p.get(t, "/open/x", "X-Forwarded-User: mallory"); !ok || app.Header.Get(userHeader) != "" {
		t.Errorf("on an open path, the application sees %+v", app)
	}
	for _, name := range []string{"X_Forwarded_User: mallory", "x-forwarded_user: mallory"} {
		if _, _, app, ok := p.get(t, "/open/x", name); !ok || app.Header.Get("X_Forwarded_User")+app.Header.Get("X-Forwarded_User") != "" {
			t.Errorf("with %q, the application sees %+v", name, app)
		}
	}
	for _, path := range []string{"/other", "/open/../other", "/open/%2e%2e/other", "/open/;/x", "/open//x"} {
		if status, _, _, ok := p.get(t, path); status != http.StatusFound || ok {
			t.Errorf("on the path %s: %d", path, status)
		}
	}
	if status, _, _, _ := p.get(t, healthPath); status != http.StatusOK {
		t.Errorf("health: %d", status)
	}
}

func TestForgedLoginsAreRefused(t *testing.T) {
	p := start(t)
	p.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p.get(t, "/") // sets the cookie of a login
	for _, path := range []string{
		callbackPath + "?code=code-1&state=another", callbackPath + "?code=code-1", callbackPath + "?error=access_denied",
	} {
		if status, _, _, ok := p.get(t, path); status != http.StatusForbidden || ok {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, _, _, ok := p.get(t, "/", "Cookie: _oauth_proxy=eyJVc2VyIjoiYWxpY2UifQ"); status != http.StatusFound || ok {
		t.Errorf("with a forged cookie: %d", status)
	}
	// A cookie of a login, which seals other values, is no session.
	sealed := ""
	target, _ := url.Parse(p.url)
	p.get(t, "/")
	for _, cookie := range p.browser.Jar.Cookies(target) {
		sealed = cookie.Value
	}
	if status, _, _, ok := p.get(t, "/", "Cookie: _oauth_proxy="+sealed); sealed == "" || status != http.StatusFound || ok {
		t.Errorf("with the cookie %q of a login: %d", sealed, status)
	}
}

func TestMissingFlagsAreReportedTogether(t *testing.T) {
	_, err := Parse([]string{"--provider=github"}, io.Discard)
	for _, want := range []string{"--provider", "--upstream", "--tls-cert", "--openshift-service-account", "--cookie-secret"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error %v does not name %s", err, want)
		}
	}
}
