package console

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestProxySendsOnlyTokenOfBrowser(t *testing.T) {
	f := newFixture(t)
	b := f.browser()
	csrf := b.logIn()
	got := b.send(http.MethodPost, proxyPath+"/api/v1/namespaces/a/pods?dryRun=All", func(r *http.Request) {
		r.Header.Set(csrfHeader, csrf)
		r.Header.Set("Origin", public)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer other")
		r.Header.Set("Impersonate-User", "system:admin")
		r.Header.Set("X-Remote-User", "system:admin")
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}, VerifiedChains: [][]*x509.Certificate{{{}}}}
	})
	if got.Code != http.StatusOK || f.request == nil {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	if f.request.URL.String() != "/api/v1/namespaces/a/pods?dryRun=All" || f.request.RequestURI != "/api/v1/namespaces/a/pods?dryRun=All" {
		t.Errorf("the API gets %s", f.request.RequestURI)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer treasure", "Content-Type": "application/json", "Cookie": "", "Impersonate-User": "", "X-Remote-User": "", "Origin": "", csrfHeader: "",
	} {
		if got := f.request.Header.Get(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if len(f.request.TLS.PeerCertificates)+len(f.request.TLS.VerifiedChains) > 0 {
		t.Error("the API sees the certificate of the browser")
	}
}

func TestProxyRejectsRequestsNotSentByConsolePages(t *testing.T) {
	f := newFixture(t)
	b := f.browser()
	csrf := b.logIn()
	stranger := f.browser()
	const pods = proxyPath + "/api/v1/pods"
	header := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
	for name, tt := range map[string]struct {
		b      *browser
		method string
		target string
		change func(*http.Request)
		want   int
	}{
		"a page of the console":               {b, "GET", pods, header(csrfHeader, csrf), 200},
		"a WebSocket of the console":          {b, "GET", pods + "?watch=1", header("Upgrade", "websocket", "Origin", public), 200},
		"no session":                          {stranger, "GET", pods, header(csrfHeader, csrf), 401},
		"a WebSocket without a session":       {stranger, "GET", pods, header("Upgrade", "websocket", "Origin", public), 401},
		"a link":                              {b, "GET", pods, nil, 403},
		"a form":                              {b, "POST", pods, header("Origin", "https://evil.example.com"), 403},
		"another value":                       {b, "GET", pods, header(csrfHeader, csrf+"x"), 403},
		"an empty value":                      {b, "GET", pods, header(csrfHeader, ""), 403},
		"another origin":                      {b, "POST", pods, header(csrfHeader, csrf, "Origin", "https://evil.example.com"), 403},
		"another port":                        {b, "POST", pods, header(csrfHeader, csrf, "Origin", "https://master.example.com"), 403},
		"a preflight":                         {b, "OPTIONS", pods, header("Origin", "https://evil.example.com", "Access-Control-Request-Method", "POST"), 403},
		"a WebSocket of another origin":       {b, "GET", pods, header("Upgrade", "websocket", "Origin", "https://evil.example.com"), 403},
		"a WebSocket without an origin":       {b, "GET", pods, header("Upgrade", "websocket"), 403},
		"a WebSocket of a sandboxed document": {b, "GET", pods, header("Upgrade", "websocket", "Origin", "null"), 403},
		"a WebSocket over plain HTTP":         {b, "GET", pods, header("Upgrade", "websocket", "Origin", "http://master.example.com:8443"), 403},
		"an upgrade to a protocol other than WebSocket":    {b, "POST", pods, header("Upgrade", "other", "Origin", public), 403},
		"a WebSocket request with a method other than GET": {b, "POST", pods, header("Upgrade", "websocket", "Origin", public), 403},
		"a WebSocket to a pod":                             {b, "GET", proxyPath + "/api/v1/namespaces/a/pods/b/proxy/", header("Upgrade", "websocket", "Origin", public), 404},
		"another path":                                     {b, "POST", proxyPath + "/oauth/token", header(csrfHeader, csrf), 404},
		"no path":                                          {b, "GET", proxyPath, header(csrfHeader, csrf), 404},
		"the console itself":                               {b, "GET", proxyPath + proxyPath + "/api", header(csrfHeader, csrf), 404},
		"a similar path":                                   {b, "GET", proxyPath + "/apisecret", header(csrfHeader, csrf), 404},
		"a path with dots":                                 {b, "GET", proxyPath + "/api/../oauth/token", header(csrfHeader, csrf), 404},
		"a path with encoded dots":                         {b, "GET", proxyPath + "/api/%2e%2e/oauth/token", header(csrfHeader, csrf), 404},
		"a path with an encoded slash":                     {b, "GET", proxyPath + "/api/..%2foauth/token", header(csrfHeader, csrf), 404},
		"a path with two slashes":                          {b, "GET", proxyPath + "//api/v1/pods", header(csrfHeader, csrf), 404},
	} {
		t.Run(name, func(t *testing.T) {
			got := tt.b.send(tt.method, tt.target, tt.change)
			if got.Code != tt.want || (f.request != nil) != (tt.want == 200) {
				t.Errorf("%d %s, reached the API: %v", got.Code, got.Body, f.request != nil)
			}
			if got.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Error("other origins can read the response")
			}
		})
	}
}

func TestProxyRejectsExpiredAndForeignCookies(t *testing.T) {
	f := newFixture(t)
	b := f.browser()
	csrf := b.logIn()
	for name, value := range map[string]func() string{
		"expired": func() string {
			text, err := f.Sessions.Seal(sessionCookie, session{Token: "treasure", CSRF: csrf, Expires: time.Now().Add(-time.Second)})
			if err != nil {
				t.Fatal(err)
			}
			return text
		},
		"of a login": func() string {
			text, err := f.Sessions.Seal(loginCookie, session{Token: "treasure", CSRF: csrf})
			if err != nil {
				t.Fatal(err)
			}
			return text
		},
		"without a token": func() string {
			text, err := f.Sessions.Seal(sessionCookie, session{CSRF: csrf})
			if err != nil {
				t.Fatal(err)
			}
			return text
		},
	} {
		b.cookies[sessionCookie] = &http.Cookie{Name: sessionCookie, Value: value()}
		if got := b.send(http.MethodGet, proxyPath+"/api/v1/pods", func(r *http.Request) { r.Header.Set(csrfHeader, csrf) }); got.Code != http.StatusUnauthorized || f.request != nil {
			t.Errorf("%s: %d", name, got.Code)
		}
	}
}

func TestPodCannotControlBrowser(t *testing.T) {
	f := newFixture(t)
	f.pod = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</x>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		for name, value := range map[string]string{
			"Set-Cookie": sessionCookie + "=planted", "WWW-Authenticate": "Basic", "Clear-Site-Data": `"*"`, "Service-Worker-Allowed": "/",
			"Access-Control-Allow-Origin": "*", "Content-Type": "text/html", "Refresh": "0; url=https://evil.example.com", "Content-Security-Policy": "default-src *",
			"Location": "/console/proxy/api/v1/secrets", "Alt-Svc": `h3="evil.example.com:443"`, "Report-To": "{}", "SourceMap": "/x", "trailer:Set-Cookie": "a=b",
		} {
			w.Header().Set(name, value)
		}
		w.WriteHeader(http.StatusTemporaryRedirect)
		_, _ = w.Write([]byte("<script>"))
	}
	b := f.browser()
	csrf := b.logIn()
	const path = "/api/v1/namespaces/a/pods/b/proxy/"
	got := b.send(http.MethodGet, proxyPath+path, func(r *http.Request) { r.Header.Set(csrfHeader, csrf) })
	want := []string{"Content-Security-Policy", "Content-Type", "Cross-Origin-Resource-Policy", "X-Content-Type-Options", "X-Frame-Options"}
	if names := slices.Sorted(maps.Keys(got.Result().Header)); !slices.Equal(names, want) || got.Code != http.StatusTemporaryRedirect {
		t.Errorf("the browser gets %d with headers %q, want %q", got.Code, names, want)
	}
	if policy := got.Header().Values("Content-Security-Policy"); len(policy) != 1 || !strings.HasPrefix(policy[0], "sandbox;") || got.Body.String() != "<script>" {
		t.Errorf("policy %q, body %q", policy, got.Body)
	}
	// The same document, on the API's own path, has an opaque origin in a browser with a session.
	f.pod = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Content-Security-Policy", "default-src *")
	}
	certificate := func(forwarded string) func(*http.Request) {
		return func(r *http.Request) {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}
			r.Header.Set("X-Forwarded-For", forwarded)
		}
	}
	for name, tt := range map[string]struct {
		b      *browser
		change func(*http.Request)
		want   bool
	}{
		"with a session": {b, nil, true}, "without a session": {f.browser(), nil, false}, "with a certificate": {f.browser(), certificate(""), true},
		"behind kubectl proxy": {f.browser(), certificate("127.0.0.1"), false},
	} {
		policy := strings.Join(tt.b.send(http.MethodGet, path, tt.change).Header().Values("Content-Security-Policy"), "\n")
		if strings.Contains(policy, "sandbox") != tt.want {
			t.Errorf("%s: policy %q", name, policy)
		}
	}
}

// A browser with a client certificate can use the API without a session, but still sends the
// session cookies. The API would pass these cookies on to pods.
func TestAPIGetsNoCookiesOfSessions(t *testing.T) {
	f := newFixture(t)
	b := f.browser()
	b.logIn()
	for cookies, want := range map[string]string{
		"":                                  "",
		"__Host-ssn=secret":                 "",
		"a=1; __Host-ssn=secret; b=2":       "a=1; b=2",
		"a=1;__Host-csrf=secret;__host-b=2": "a=1;__host-b=2",
	} {
		b.send(http.MethodGet, "/api/v1/namespaces/evil/pods/web/proxy/", func(r *http.Request) {
			if cookies != "" {
				r.Header.Add("Cookie", cookies)
			}
		})
		if got := f.request.Header.Get("Cookie"); got != want || len(f.request.Header["Cookie"]) > 1 {
			t.Errorf("with %q, the API gets %q", cookies, f.request.Header["Cookie"])
		}
	}
	if b.send(http.MethodGet, "/login", nil); !strings.Contains(f.request.Header.Get("Cookie"), sessionCookie) {
		t.Error("the login pages get no cookies")
	}
}

func TestWatchesCanRequestTables(t *testing.T) {
	f := newFixture(t)
	b := f.browser()
	b.logIn()
	b.send(http.MethodGet, proxyPath+"/api/v1/pods?accept=application%2Fjson%3Bas%3DTable&watch=1", func(r *http.Request) {
		r.Header.Set("Upgrade", "websocket")
		r.Header.Set("Origin", public)
		r.Header.Set("Accept", "*/*")
	})
	if f.request == nil || f.request.Header.Get("Accept") != "application/json;as=Table" || f.request.URL.RawQuery != "watch=1" ||
		f.request.Header.Get("Origin") != public {
		t.Errorf("the API gets %+v", f.request)
	}
}

// FuzzProxyPath checks that requests below the console's proxy path are passed only to the API.
func FuzzProxyPath(f *testing.F) {
	for _, seed := range []string{"/api/v1", "/api/../login", "/%2e%2e/login", "//api", "/api/v1/../../oauth", "/apis\x00", "/api/..;/login", "/api\\..\\login"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		fixture := newFixture(t)
		b := fixture.browser()
		csrf := b.logIn()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path, r.URL.RawPath = proxyPath+path, ""
		r.AddCookie(b.cookies[sessionCookie])
		r.Header.Set(csrfHeader, csrf)
		fixture.request = nil
		fixture.filter(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fixture.request = r })).ServeHTTP(httptest.NewRecorder(), r)
		if fixture.request == nil {
			return
		}
		if reached := fixture.request.URL.Path; strings.Contains(reached, "/../") || fixture.request.Header.Get("Authorization") != "" && !isAPI(reached) {
			t.Errorf("%q reaches %q", path, reached)
		}
	})
}
