package oauth

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/oauth/idp/anyone"
)

// FuzzServer verifies, for arbitrary paths, parameters, forms, cookies and Authorization headers,
// that a request without valid credentials receives no token, code, session or redirect to another
// site, and stores nothing.
func FuzzServer(f *testing.F) {
	const form = "application/x-www-form-urlencoded"
	for _, seed := range []struct{ method, path, query, kind, body, cookie, authorization string }{
		{"GET", "/oauth/authorize", "client_id=demo&response_type=code&redirect_uri=https://evil.example.com/", "", "", "", ""},
		{"GET", "/oauth/authorize", "client_id=openshift-challenging-client&response_type=token", "", "", "", "Basic YWxpY2U6c2VjcmV0"},
		{"POST", "/oauth/authorize", "client_id=demo", form, "client_id=demo&scope=user:full", "__Host-ssn=x", ""},
		{"GET", "/oauth/approve", "then=/oauth/authorize?client_id=demo", "", "", "", ""},
		{"POST", "/oauth/approve", "", form, "then=%2Foauth%2Fauthorize%3Fclient_id%3Ddemo&approve=1&csrf=x", "__Host-csrf=x", ""},
		{"POST", "/oauth/token", "", form, "grant_type=authorization_code&client_id=demo&code=sha256~" + strings.Repeat("A", 43), "", ""},
		{"POST", "/oauth/token", "", form, "grant_type=authorization_code&code=%zz", "", "Basic ZGVtbzoleno="},
		{"GET", "/oauth/token/request", "", "", "", "", ""},
		{"GET", "/oauth/token/display", "code=x&state=x&error=x&error_description=x", "", "", "__Host-csrf=x", ""},
		{"POST", "/oauth/token/display", "", form, "code=x&csrf=x", "__Host-csrf=x", ""},
		{"GET", "/login", "then=//evil.example.com&reason=x&username=x", "", "", "", ""},
		{"POST", "/login", "", form, "then=//evil.example.com&username=alice&password=secret&csrf=x", "__Host-csrf=x", ""},
		{"POST", "/login/any", "", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"then\"\r\n\r\n//evil.example.com\r\n--b--", "__Host-csrf=x", ""},
		{"POST", "/logout", "then=//evil.example.com", form, "csrf=x", "__Host-csrf=x; __Host-ssn=x", ""},
		{"GET", "/oauth2callback/any", "state=Y3NyZj14&code=x", "", "", "", ""},
		{"HEAD", "/.well-known/oauth-authorization-server", "", "", "", "", ""},
	} {
		f.Add(seed.method, seed.path, seed.query, seed.kind, seed.body, seed.cookie, seed.authorization)
	}
	w := newFixture(f, func(c *Config) { c.Providers[0].Password = anyone.Deny{} })
	home, err := url.Parse(w.url)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, path, query, kind, body, cookie, authorization string) {
		if !strings.HasPrefix(path, "/") {
			return
		}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", strings.NewReader(body))
		request.Method, request.Host = method, home.Host
		request.URL = &url.URL{Path: path, RawQuery: query}
		for name, value := range map[string]string{"Content-Type": kind, "Cookie": cookie, "Authorization": authorization, "Accept": "text/html"} {
			if value != "" {
				request.Header.Set(name, value)
			}
		}
		resp := httptest.NewRecorder()
		w.handler.ServeHTTP(resp, request)
		if resp.Code >= http.StatusInternalServerError {
			t.Errorf("%s %s?%s: %d %s", method, path, query, resp.Code, resp.Body)
		}
		if location := resp.Header().Get("Location"); location != "" {
			to, err := home.Parse(location)
			if err != nil || to.Host != home.Host || strings.HasPrefix(location, "//") || strings.ContainsAny(location, "\\\r\n\t") {
				t.Errorf("%s %s?%s: redirects to %q", method, path, query, location)
			}
		}
		for _, set := range resp.Result().Cookies() {
			session := &http.Request{Header: http.Header{"Cookie": {set.Name + "=" + set.Value}}}
			if user, ok := w.login.Sessions.User(session); ok {
				t.Errorf("%s %s?%s: starts a session of %+v", method, path, query, user)
			}
		}
		if len(w.tokens.All())+len(w.codes.All())+len(w.users.All()) != 0 {
			t.Fatalf("%s %s?%s: stored something", method, path, query)
		}
	})
}
