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
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/internal/oauthtest"
)

// server is an API server whose OAuth server logs in Alice.
type server struct {
	oauthtest.Server
	url      string
	outage   int // number of metadata requests that fail before a request succeeds
	allowed  bool
	reviews  []map[string]any
	metadata int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		if s.metadata++; s.metadata <= s.outage {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"authorization_endpoint": s.url + "/oauth/authorize"})
	case "/apis/authorization.openshift.io/v1/subjectaccessreviews":
		review := map[string]any{}
		_ = json.NewDecoder(r.Body).Decode(&review)
		s.reviews = append(s.reviews, review)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "SubjectAccessReviewResponse", "allowed": s.allowed})
	default:
		s.Server.ServeHTTP(w, r)
	}
}

// proxied is a proxy for an application that returns the headers of a request in its response.
type proxied struct {
	*server
	url     string
	browser *http.Client
}

// application starts an application that returns its name and the headers of a request in its
// response.
func application(t *testing.T, name string, serve func(http.Handler) *httptest.Server) *httptest.Server {
	t.Helper()
	app := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"app": name, "path": r.URL.RequestURI(), "header": r.Header, "host": r.Host})
	}))
	t.Cleanup(app.Close)
	return app
}

// file writes a temporary file.
func file(t *testing.T, content []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func certificate(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func start(t *testing.T, args ...string) proxied {
	t.Helper()
	return startFor(t, "--upstream="+application(t, "app", httptest.NewServer).URL, args...)
}

// startFor starts a proxy with the given --upstream flag.
func startFor(t *testing.T, upstream string, args ...string) proxied {
	t.Helper()
	s := &server{Server: oauthtest.Server{
		Authorize: "/oauth/authorize", Token: "/oauth/token",
		API: map[string]any{"/apis/user.openshift.io/v1/users/~": map[string]any{"metadata": map[string]string{"name": "alice"}}},
	}}
	api := httptest.NewTLSServer(s)
	t.Cleanup(api.Close)
	s.url = api.URL
	handler := newTestHandler(t, append([]string{
		upstream, "--client-id=" + oauthtest.ClientID, "--client-secret=" + oauthtest.ClientSecret,
		"--openshift-api=" + api.URL, "--openshift-ca=" + file(t, certificate(api)),
	}, args...)...)
	proxy := httptest.NewTLSServer(handler)
	t.Cleanup(proxy.Close)
	jar, _ := cookiejar.New(nil) // returns no error
	browser := proxy.Client()    // trusts the proxy's certificate
	trusted := browser.Transport.(*http.Transport).TLSClientConfig.RootCAs
	trusted.AddCert(api.Certificate())
	browser.Jar = jar
	return proxied{s, proxy.URL, browser}
}

func newTestHandler(t *testing.T, args ...string) *handler {
	t.Helper()
	settings, err := Parse(append([]string{"--https-address=", "--provider=openshift", "--cookie-secret=SECRET"}, args...), io.Discard)
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
	return handler
}

// seen describes a request that reached the application.
type seen struct {
	App, Path, Host string
	Header          http.Header
}

// get requests a path through the proxy, and returns the request that the application received. ok
// is false if the application received no request.
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
		t.Fatalf("after the login, the application receives %+v", app)
	}
	_, _, app, _ = p.get(t, "/again", "X-Forwarded-User: mallory", "X-Forwarded-Access-Token: forged", "Cookie: app=1")
	if app.Path != "/again" || app.Header.Get(userHeader) != "alice" || app.Header.Get(tokenHeader) != "" || app.Header.Get("Cookie") != "app=1" {
		t.Errorf("in the session, the application receives %+v", app)
	}
	p.get(t, signOutPath)
	p.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if status, _, app, ok := p.get(t, "/again"); status != http.StatusFound || ok {
		t.Errorf("after the logout: %d, the application receives %+v", status, app)
	}
}

func TestTokenIsPassedIfRequested(t *testing.T) {
	p := start(t, "--pass-access-token")
	if _, _, app, ok := p.get(t, "/"); !ok || app.Header.Get(tokenHeader) == "" {
		t.Errorf("the application receives %+v", app)
	}
}

func TestOnlyUsersWithAccessReachApplication(t *testing.T) {
	for sar, want := range map[string][]string{
		`{"resource":"pods","namespace":"shop","verb":"get"}`: {
			`{"kind":"SubjectAccessReview","apiVersion":"authorization.openshift.io/v1","namespace":"shop","verb":"get","resourceAPIGroup":"",` +
				`"resourceAPIVersion":"","resource":"pods","resourceName":"","path":"","isNonResourceURL":false,"scopes":[]}`,
		},
		`[{"resource":"routes","group":"route.openshift.io","name":"shop","verb":"get","scopes":["user:full"]},` +
			`{"apiVersion":"v1","kind":"SubjectAccessReview","isNonResourceURL":true,"path":"/metrics","verb":"get"}]`: {
			`{"kind":"SubjectAccessReview","apiVersion":"authorization.openshift.io/v1","namespace":"","verb":"get",` +
				`"resourceAPIGroup":"route.openshift.io","resourceAPIVersion":"","resource":"routes","resourceName":"shop","path":"",` +
				`"isNonResourceURL":false,"scopes":["user:full"]}`,
			`{"kind":"SubjectAccessReview","apiVersion":"authorization.openshift.io/v1","namespace":"","verb":"get","resourceAPIGroup":"",` +
				`"resourceAPIVersion":"","resource":"","resourceName":"","path":"/metrics","isNonResourceURL":true,"scopes":[]}`,
		},
	} {
		p := start(t, "--openshift-sar="+sar)
		if status, _, _, ok := p.get(t, "/"); status != http.StatusForbidden || ok {
			t.Errorf("%s: without access: %d", sar, status)
		}
		p.allowed, p.reviews = true, nil
		if _, _, app, ok := p.get(t, "/"); !ok || app.Header.Get(userHeader) != "alice" {
			t.Errorf("%s: with access, the application receives %+v", sar, app)
		}
		var reviews []map[string]any
		if err := json.Unmarshal([]byte("["+strings.Join(want, ",")+"]"), &reviews); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(reviews, p.reviews); diff != "" {
			t.Errorf("%s: the reviews differ (-want +got):\n%s", sar, diff)
		}
	}
}

func TestSessionsAreValidForOneClient(t *testing.T) {
	recorder := httptest.NewRecorder()
	mine, err := newSealer("system:serviceaccount:shop:proxy", "SECRET")
	if err == nil {
		err = mine.set(recorder, "name", session{User: "alice"}, time.Minute)
	}
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.AddCookie(recorder.Result().Cookies()[0])
	for client, want := range map[string]bool{"system:serviceaccount:shop:proxy": true, "system:serviceaccount:shop:other": false} {
		sealer, err := newSealer(client, "SECRET")
		if err != nil {
			t.Fatal(err)
		}
		var of session
		if got := sealer.open(request, "name", &of); got != want {
			t.Errorf("the client %s can open the cookie: %t, want %t", client, got, want)
		}
	}
}

func TestOtherCookiesAreUnchanged(t *testing.T) {
	p := start(t)
	p.get(t, "/")
	_, _, app, _ := p.get(t, "/", `Cookie: quoted="a b"; _oauth_proxy_login=x; odd=a,b"c`)
	if sent := app.Header.Get("Cookie"); sent != `quoted="a b"; odd=a,b"c` {
		t.Errorf("the application receives the cookies %s", sent)
	}
	got := withoutCookies([]string{" session =1;a=session", "session=2", "b"}, "session")
	if diff := cmp.Diff([]string{"a=session", "b"}, got); diff != "" {
		t.Errorf("the cookies differ (-want +got):\n%s", diff)
	}
}

func TestUpstreamsServeTheirPaths(t *testing.T) {
	secure := application(t, "secure", httptest.NewTLSServer)
	exact := application(t, "exact", httptest.NewServer)
	p := start(t, "--upstream="+secure.URL+"/api/", "--upstream-ca="+file(t, certificate(secure)), "--upstream="+exact.URL+"/api/v1")
	for path, want := range map[string]string{"/": "app", "/api": "app", "/api/?q=1": "secure", "/api/v1": "exact", "/api/v1/x": "secure", "/api/a%2Fb": "secure"} {
		if _, _, app, _ := p.get(t, path); app.App != want || app.Path != path {
			t.Errorf("%s is sent to %s at %s, want %s", path, app.App, app.Path, want)
		}
	}
	p = startFor(t, "--upstream="+exact.URL+"/only/")
	if status, _, _, _ := p.get(t, "/other"); status != http.StatusNotFound {
		t.Errorf("a path without application: %d", status)
	}
}

func TestApplicationReceivesSchemeOfBrowser(t *testing.T) {
	app := application(t, "app", httptest.NewServer)
	handler := newTestHandler(t, "--upstream="+app.URL, "--client-id=a", "--client-secret=b", "--openshift-ca="+file(t, certificate(application(t, "", httptest.NewTLSServer))),
		"--skip-auth-regex=.*")
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	for url, want := range map[string]string{plain.URL: "https", secure.URL: "https"} {
		p := proxied{url: url, browser: secure.Client()}
		sent := "https"
		if url == secure.URL {
			sent = "http"
		}
		if _, _, app, _ := p.get(t, "/", "X-Forwarded-Proto: "+sent); app.Header.Get(schemeHeader) != want {
			t.Errorf("at %s the application receives the scheme %s", url, app.Header.Get(schemeHeader))
		}
	}
}

func TestLoginWaitsForAPIServer(t *testing.T) {
	p := start(t)
	p.outage = 1
	if _, _, app, ok := p.get(t, "/"); !ok || app.Header.Get(userHeader) != "alice" {
		t.Errorf("after an outage, the application receives %+v", app)
	}
}

func TestRenewedTokenOfServiceAccountIsUsed(t *testing.T) {
	secret := file(t, []byte("an old token"))
	p := start(t, "--client-secret-file="+secret)
	if status, _, _, ok := p.get(t, "/"); status != http.StatusInternalServerError || ok {
		t.Fatalf("with an old token: %d", status)
	}
	if err := os.WriteFile(secret, []byte(oauthtest.ClientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, app, ok := p.get(t, "/"); !ok || app.Header.Get(userHeader) != "alice" {
		t.Errorf("with the new token, the application receives %+v", app)
	}
}

func TestOpenPathsNeedNoLogin(t *testing.T) {
	p := start(t, "--skip-auth-regex=^/open/")
	p.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if _, _, app, ok := p.get(t, "/open/x", "X-Forwarded-User: mallory"); !ok || app.Header.Get(userHeader) != "" {
		t.Errorf("on an open path, the application receives %+v", app)
	}
	for _, name := range []string{"X_Forwarded_User: mallory", "x-forwarded_user: mallory"} {
		if _, _, app, ok := p.get(t, "/open/x", name); !ok || app.Header.Get("X_Forwarded_User")+app.Header.Get("X-Forwarded_User") != "" {
			t.Errorf("with %q, the application receives %+v", name, app)
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

func TestForgedLoginsAreRejected(t *testing.T) {
	p := start(t)
	p.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p.get(t, "/") // sets the login cookie
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
	// A login cookie is not accepted as a session cookie, although the proxy sealed both of them.
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

func TestInvalidFlagsAreRejected(t *testing.T) {
	for flag, want := range map[string]string{
		"--upstream=localhost:8080":                                     "http or https",
		"--upstream=file:///var/www":                                    "http or https",
		"--upstream=http://app/?a=b":                                    "without user, query",
		"--upstream=http://second/":                                     "another upstream",
		"--upstream=https://app/secure/":                                "--upstream-ca",
		"--redirect-url=https://app.example.com/other":                  "must be https://HOST" + callbackPath,
		"--redirect-url=http://app.example.com":                         "must be https://HOST" + callbackPath,
		"--redirect-url=app.example.com":                                "must be https://HOST" + callbackPath,
		"--cookie-expire=0":                                             "--cookie-expire",
		"--cookie-expire=-1h":                                           "--cookie-expire",
		"--cookie-name=":                                                "--cookie-name",
		"--cookie-name=a b":                                             "--cookie-name",
		"--client-secret-file=/missing":                                 "/missing",
		`--openshift-sar={"verb":"get"}`:                                "needs verb and resource",
		`--openshift-sar={"verb":"get","resource":"pods"} {`:            "text after",
		`--openshift-sar=[]`:                                            "every user",
		`--openshift-sar={"user":"bob","verb":"get","resource":"pods"}`: "the user who logs in",
		`--openshift-sar=pods`:                                          "invalid character",
	} {
		_, err := Parse([]string{"--https-address=", "--upstream=http://first", "--client-id=a", "--client-secret=b", "--cookie-secret=c", flag}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error %v does not contain %q", flag, err, want)
		}
	}
}

func TestRedirectURLNeedsNoPath(t *testing.T) {
	for _, text := range []string{"https://app.example.com", "https://app.example.com/", "https://app.example.com:443" + callbackPath} {
		s, err := Parse([]string{"--https-address=", "--upstream=http://a", "--client-id=a", "--client-secret=b", "--cookie-secret=c", "--redirect-url=" + text}, io.Discard)
		if err != nil || s.redirectURL("inside:8443") != "https://app.example.com"+callbackPath {
			t.Errorf("%s: the address is %s, error %v", text, s.redirectURL("inside:8443"), err)
		}
	}
}
