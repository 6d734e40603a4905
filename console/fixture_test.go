package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/fstest"
	"time"
)

const public = "https://master.example.com:8443"

// fixture is a console with a token endpoint and an API that record their requests.
type fixture struct {
	*server
	t       *testing.T
	chain   http.Handler
	form    url.Values
	request *http.Request // the last request to the API
	revoked []string
	// generation and generationError are the values that Sessions.Generation returns.
	generation      string
	generationError error
	errors          []error
	// pod handles the requests that the API proxies to a pod.
	pod http.HandlerFunc
}

// sealed stores cookie values in plain text. It rejects a value that was sealed for a cookie with a
// different name.
type sealed struct{ f *fixture }

func (s sealed) Seal(name string, value any) (string, error) {
	text, err := json.Marshal(map[string]any{name: value})
	return url.QueryEscape(string(text)), err
}

func (s sealed) Open(name, text string, into any) error {
	plain, err := url.QueryUnescape(text)
	if err != nil {
		return err
	}
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(plain), &values); err != nil || values[name] == nil {
		return errors.New("not sealed for this name")
	}
	return json.Unmarshal(values[name], into)
}

func (s sealed) Generation(context.Context, string) (string, error) {
	return s.f.generation, s.f.generationError
}

func (s sealed) LogOut(_ http.ResponseWriter, _ *http.Request, token string) error {
	s.f.revoked = append(s.f.revoked, token)
	return nil
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t}
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.form = r.PostForm
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		f.form = r.PostForm
		_, _ = w.Write([]byte(`{"access_token":"treasure","expires_in":3600}`))
	}))
	t.Cleanup(tokens.Close)
	content := fstest.MapFS{
		"README":             {Data: []byte("read me")},
		"inputs":             {Data: []byte("abc")},
		"index.html.br":      {Data: []byte("brotli")},
		"index.html.gz":      {Data: compressed(t, "<!doctype html>")},
		"assets/a.js.br":     {Data: []byte("brotli of a")},
		"assets/a.js.gz":     {Data: compressed(t, "code")},
		"assets/font.woff2":  {Data: []byte("font")},
		"icon.svg.gz":        {Data: compressed(t, "<svg/>")},
		"assets/secret/x.js": {Data: []byte("x")},
	}
	files, err := readFiles(content)
	if err != nil {
		t.Fatal(err)
	}
	f.server = &server{
		Config: Config{
			PublicURL: public, ClientID: "openshift-web-console", AuthorizePath: "/oauth/authorize", TokenPath: "/oauth/token",
			Sessions: sealed{f}, Report: func(err error) { f.errors = append(f.errors, err) },
		},
		exchange: &tokenClient{tokens.URL, tokens.Client()}, content: content, files: files,
	}
	f.current.Store(&settings{})
	mux := http.NewServeMux()
	for path, handler := range f.handlers() {
		mux.Handle(path, handler)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		f.request = r
		if f.pod != nil {
			f.pod(w, r)
		}
	})
	f.chain = f.filter(mux)
	return f
}

// browser sends requests and stores cookies.
type browser struct {
	f       *fixture
	cookies map[string]*http.Cookie
}

func (f *fixture) browser() *browser { return &browser{f, map[string]*http.Cookie{}} }

// send sends a request and stores the response's cookies.
func (b *browser) send(method, target string, change func(*http.Request)) *httptest.ResponseRecorder {
	b.f.t.Helper()
	b.f.request = nil
	r := httptest.NewRequest(method, target, nil)
	if r.Host == "example.com" {
		r.Host = "master.example.com:8443"
	}
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	b.f.chain.ServeHTTP(w, r)
	for _, cookie := range w.Result().Cookies() {
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
			continue
		}
		b.cookies[cookie.Name] = cookie
	}
	return w
}

// logIn completes the OAuth flow and returns the value for csrfHeader.
func (b *browser) logIn() string {
	b.f.t.Helper()
	to, err := b.send(http.MethodGet, loginPath+"?then=/console/projects", nil).Result().Location()
	if err != nil {
		b.f.t.Fatal(err)
	}
	done := b.send(http.MethodGet, callbackPath+"?code=abc&state="+to.Query().Get("state"), nil)
	if location := done.Header().Get("Location"); location != "/console/projects" {
		b.f.t.Fatalf("the login ends at %q", location)
	}
	var seen struct {
		CSRF    string
		Expires time.Time
	}
	if err := json.NewDecoder(b.send(http.MethodGet, sessionPath, nil).Body).Decode(&seen); err != nil || seen.CSRF == "" || time.Until(seen.Expires) > time.Hour {
		b.f.t.Fatalf("session %+v, %v", seen, err)
	}
	return seen.CSRF
}
