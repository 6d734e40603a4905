package console

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestLoginUsesCodeGrantWithPKCE(t *testing.T) {
	f := newFixture(t)
	b := f.browser()
	to, err := b.send(http.MethodGet, loginPath+"?then=/console/project/a/pods", nil).Result().Location()
	if err != nil {
		t.Fatal(err)
	}
	query := to.Query()
	if to.Scheme+"://"+to.Host+to.Path != public+"/oauth/authorize" || query.Get("client_id") != "openshift-web-console" ||
		query.Get("response_type") != "code" || query.Get("redirect_uri") != public+callbackPath || query.Get("code_challenge_method") != "S256" {
		t.Fatalf("the browser is redirected to %s", to)
	}
	done := b.send(http.MethodGet, callbackPath+"?code=abc&state="+query.Get("state"), nil)
	if done.Header().Get("Location") != "/console/project/a/pods" {
		t.Errorf("the login ends at %q", done.Header().Get("Location"))
	}
	challenge := sha256.Sum256([]byte(f.form.Get("code_verifier")))
	if base64.RawURLEncoding.EncodeToString(challenge[:]) != query.Get("code_challenge") || f.form.Get("code") != "abc" ||
		f.form.Get("grant_type") != "authorization_code" || f.form.Get("redirect_uri") != public+callbackPath {
		t.Errorf("the code is exchanged by %v", f.form)
	}
	header := strings.Join(done.Header().Values("Set-Cookie"), "\n")
	if !strings.Contains(header, "; Path=/; HttpOnly; Secure; SameSite=Strict") || strings.Contains(header, "Domain") {
		t.Errorf("cookies: %s", header)
	}
	if _, ok := b.cookies[loginCookie]; ok {
		t.Error("the login cookie is not removed")
	}
}

func TestLoginStartsAtPublicAddress(t *testing.T) {
	f := newFixture(t)
	other := func(r *http.Request) { r.Host = "10.0.0.1:8443" }
	first := f.browser().send(http.MethodGet, loginPath+"?then=/console/projects", other).Header().Get("Location")
	if !strings.HasPrefix(first, public+loginPath+"?") || !strings.Contains(first, "then=%2Fconsole%2Fprojects") {
		t.Fatalf("the browser is redirected to %q", first)
	}
	// A proxy in front of the master replaces the Host header of every request.
	if second := f.browser().send(http.MethodGet, strings.TrimPrefix(first, public), other).Header().Get("Location"); !strings.HasPrefix(second, public+"/oauth/authorize?") {
		t.Errorf("after that, the browser is redirected to %q", second)
	}
}

func TestCallbackAcceptsOnlyFlowOfItsBrowser(t *testing.T) {
	f := newFixture(t)
	state := func(b *browser) string {
		to, err := url.Parse(b.send(http.MethodGet, loginPath, nil).Header().Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		return to.Query().Get("state")
	}
	attacker, victim, current := f.browser(), f.browser(), f.browser()
	stolen := state(attacker)
	state(victim)
	used := f.browser()
	usedState := state(used)
	used.send(http.MethodGet, callbackPath+"?code=abc&state="+usedState, nil)
	delete(used.cookies, sessionCookie)
	for name, tt := range map[string]struct {
		b     *browser
		query string
	}{
		"of another browser": {victim, "code=abc&state=" + stolen},
		"without a state":    {victim, "code=abc"},
		"without a login":    {current, "code=abc&state=" + stolen},
		"a second time":      {used, "code=abc&state=" + usedState},
	} {
		f.form = nil
		got := tt.b.send(http.MethodGet, callbackPath+"?"+tt.query, nil)
		if got.Header().Get("Location") != errorPath+"?error=login_expired" || tt.b.cookies[sessionCookie] != nil || f.form != nil {
			t.Errorf("%s: %v, form %v", name, got.Header(), f.form)
		}
	}
	// The page receives the server's rejection, but shows only predefined messages.
	refused := f.browser()
	got := refused.send(http.MethodGet, callbackPath+"?error=access_denied&state="+state(refused), nil)
	if got.Header().Get("Location") != errorPath+"?error=access_denied" {
		t.Errorf("a denied login redirects to %q", got.Header().Get("Location"))
	}
}

func TestLoginReplacesPlantedSession(t *testing.T) {
	f := newFixture(t)
	attacker, victim := f.browser(), f.browser()
	attacker.logIn()
	victim.cookies[sessionCookie] = attacker.cookies[sessionCookie]
	victim.logIn()
	if victim.cookies[sessionCookie].Value == attacker.cookies[sessionCookie].Value {
		t.Error("the session is the one from before the login")
	}
}

func TestLoginReturnsOnlyToConsole(t *testing.T) {
	for then, want := range map[string]string{
		"/console/project/a/pods/b?tab=1#x": "/console/project/a/pods/b?tab=1#x",
		"/console/":                         "/console/",
		"":                                  Path,
		"https://evil.example.com/console/": Path,
		"//evil.example.com/console/":       Path,
		"/\\evil.example.com":               Path,
		"/console/../oauth/token/request":   Path,
		"/console/%2e%2e/oauth":             Path,
		"/console//evil.example.com":        Path,
		"/logout":                           Path,
		"javascript:alert(1)":               Path,
		"/console/\n/evil":                  Path,
		"/console/%0d%0aSet-Cookie:x":       Path,
	} {
		if got := local(then); got != want {
			t.Errorf("%q redirects to %q, want %q", then, got, want)
		}
	}
}

func TestLogoutDeletesToken(t *testing.T) {
	f := newFixture(t)
	b := f.browser()
	csrf := b.logIn()
	for name, change := range map[string]func(*http.Request){
		"without the header": nil,
		"with another value": func(r *http.Request) { r.Header.Set(csrfHeader, csrf[1:]) },
	} {
		if got := b.send(http.MethodPost, logoutPath, change); got.Code != http.StatusForbidden || len(f.revoked) > 0 {
			t.Errorf("%s: %d, deleted %q", name, got.Code, f.revoked)
		}
	}
	if got := b.send(http.MethodGet, logoutPath, func(r *http.Request) { r.Header.Set(csrfHeader, csrf) }); got.Code != http.StatusMethodNotAllowed {
		t.Errorf("a GET request logs out: %d", got.Code)
	}
	got := b.send(http.MethodPost, logoutPath, func(r *http.Request) { r.Header.Set(csrfHeader, csrf) })
	if got.Code != http.StatusNoContent || !slices.Equal(f.revoked, []string{"treasure"}) || b.cookies[sessionCookie] != nil {
		t.Errorf("logout: %d, deleted %q, cookies %v", got.Code, f.revoked, b.cookies)
	}
	if got := b.send(http.MethodGet, sessionPath, nil); got.Code != http.StatusUnauthorized {
		t.Errorf("after the logout: %d", got.Code)
	}
}

func TestLogoutElsewhereEndsSession(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "users"}, "alice")
	for name, tt := range map[string]struct {
		generation string
		err        error
		reports    int
		want       int
	}{
		"no logout":                 {"first", nil, 0, http.StatusOK},
		"a logout":                  {"second", nil, 0, http.StatusUnauthorized},
		"the first logout":          {"", nil, 0, http.StatusUnauthorized},
		"the user no longer exists": {"", missing, 0, http.StatusUnauthorized},
		"the store cannot be read":  {"first", errors.New("the store cannot be read"), 1, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.generation = "first"
			b := f.browser()
			csrf := b.logIn()
			f.generation, f.generationError = tt.generation, tt.err
			if got := b.send(http.MethodGet, sessionPath, nil); got.Code != tt.want || len(f.errors) != tt.reports {
				t.Errorf("session: %d, errors %v", got.Code, f.errors)
			}
			if got := b.send(http.MethodGet, proxyPath+"/api/v1/pods", func(r *http.Request) { r.Header.Set(csrfHeader, csrf) }); got.Code != tt.want || (f.request != nil) != (tt.want == http.StatusOK) {
				t.Errorf("request to the API: %d, sent %v", got.Code, f.request)
			}
		})
	}
}

func TestLoginFailsWithoutGeneration(t *testing.T) {
	f := newFixture(t)
	b := f.browser()
	to, err := b.send(http.MethodGet, loginPath, nil).Result().Location()
	if err != nil {
		t.Fatal(err)
	}
	f.generationError = errors.New("the store cannot be read")
	got := b.send(http.MethodGet, callbackPath+"?code=abc&state="+to.Query().Get("state"), nil)
	if got.Header().Get("Location") != errorPath+"?error=server_error" || b.cookies[sessionCookie] != nil || len(f.errors) != 1 {
		t.Errorf("%v, errors %v", got.Header(), f.errors)
	}
}
