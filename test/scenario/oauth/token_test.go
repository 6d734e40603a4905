package oauth

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestCurlGetsTokenByImplicitGrant(t *testing.T) {
	s := at(t, kit.Shared(t))
	got := s.do(s.browser(), http.MethodGet, implicit, nil, basic("developer", s.DeveloperPassword()))
	location := got.location(t)
	fragment, err := url.ParseQuery(location.EscapedFragment())
	if err != nil {
		t.Fatal(err)
	}
	token := fragment.Get("access_token")
	fragment.Set("access_token", "")
	want := "access_token=&expires_in=86400&scope=user%3Afull&token_type=Bearer"
	if diff := cmp.Diff(want, fragment.Encode()); diff != "" || got.StatusCode != http.StatusFound {
		t.Errorf("%s, fragment (-want +got):\n%s", got.Status, diff)
	}
	if location.Fragment = ""; !strings.HasPrefix(location.String(), s.url+"/oauth/token/implicit") {
		t.Errorf("the browser is redirected to %s", location)
	}
	for name, want := range map[string]string{
		"Cache-Control": "no-cache, no-store, max-age=0, must-revalidate",
		"Expires":       "Fri, 01 Jan 1990 00:00:00 GMT",
		"Pragma":        "no-cache",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.Header.Get(name), want)
		}
	}
	// A request with a password must neither start nor end a session.
	if cookie := got.Header.Get("Set-Cookie"); cookie != "" || got.body != "" {
		t.Errorf("cookie %q, body %q", cookie, got.body)
	}
	self := s.do(s.browser(), http.MethodGet, "/apis/user.openshift.io/v1/users/~", nil, bearer(token))
	var user struct{ Metadata struct{ Name, UID string } }
	if err := json.Unmarshal([]byte(self.body), &user); err != nil || user.Metadata.Name != "developer" || user.Metadata.UID == "" {
		t.Errorf("the user of the token is %+v, %v, %s", user, err, self.body)
	}
}

func TestMetadataDescribesServer(t *testing.T) {
	s := at(t, kit.Shared(t))
	got := s.do(s.browser(), http.MethodGet, "/.well-known/oauth-authorization-server", nil, nil)
	want := map[string]any{
		"issuer": s.url, "authorization_endpoint": s.url + "/oauth/authorize", "token_endpoint": s.url + "/oauth/token",
		"scopes_supported":                 []any{"user:full", "user:info", "user:check-access", "user:list-scoped-projects", "user:list-projects"},
		"response_types_supported":         []any{"code", "token"},
		"grant_types_supported":            []any{"authorization_code", "implicit"},
		"code_challenge_methods_supported": []any{"S256"},
	}
	var document map[string]any
	if err := json.Unmarshal([]byte(got.body), &document); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, document); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}

func TestChallengesRequireCSRFHeader(t *testing.T) {
	s := at(t, kit.Shared(t))
	withMark := func(r *http.Request) { r.Header.Set("X-CSRF-Token", "1") }
	tests := []struct {
		name      string
		change    func(*http.Request)
		challenge string
		body      string
	}{
		{"without the header", nil, "", "A non-empty X-CSRF-Token header is required"},
		{"with the header", withMark, `Basic realm="openshift"`, ""},
		{"with a wrong password", basic("developer", "wrong"), `Basic realm="openshift"`, ""},
		{"with an unknown user", basic("nobody", "wrong"), `Basic realm="openshift"`, ""},
	}
	for _, tt := range tests {
		got := s.do(s.browser(), http.MethodGet, implicit, nil, tt.change)
		if got.StatusCode != http.StatusUnauthorized || got.Header.Get("WWW-Authenticate") != tt.challenge || !strings.Contains(got.body, tt.body) {
			t.Errorf("%s: %s, challenge %q, body %q", tt.name, got.Status, got.Header.Get("WWW-Authenticate"), got.body)
		}
	}
	browser := s.do(s.browser(), http.MethodGet, "/oauth/token/request", nil, nil)
	login := s.do(s.browser(), http.MethodGet, browser.location(t).String(), nil, nil)
	if address := login.location(t); address.Path != "/login" || !strings.HasPrefix(address.Query().Get("then"), "/oauth/authorize?") {
		t.Errorf("a browser is redirected to %s", address)
	}
}

func TestTokensAuthenticateInEveryForm(t *testing.T) {
	s := at(t, kit.Shared(t))
	token := s.token("developer", s.DeveloperPassword())
	review := func(change func(*http.Request)) (int, string) {
		body := `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
		got := s.do(s.browser(), http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", nil, func(r *http.Request) {
			r.Body, r.ContentLength = http.NoBody, 0
			change(r)
			r.Header.Set("Content-Type", "application/json")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		})
		return got.StatusCode, got.body
	}
	status, user := review(bearer(token))
	for _, want := range []string{`"username":"developer"`, `"system:authenticated"`, `"system:authenticated:oauth"`, `"scopes.authorization.openshift.io":["user:full"]`} {
		if !strings.Contains(strings.ReplaceAll(user, " ", ""), want) {
			t.Errorf("status %d, the review lacks %s: %s", status, want, user)
		}
	}
	protocol := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))
	status, user = review(func(r *http.Request) {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
		r.Header.Set("Sec-WebSocket-Protocol", protocol+", base64.channel.k8s.io")
	})
	if !strings.Contains(user, "developer") {
		t.Errorf("websocket: %d, %s", status, user)
	}
	for name, wrong := range map[string]string{
		"another token":   "sha256~" + strings.Repeat("A", 43),
		"part of a token": token[:len(token)-1],
		"empty":           "",
		"no token":        strings.Repeat("x", 5000),
	} {
		got := s.do(s.browser(), http.MethodGet, "/apis/user.openshift.io/v1/users/~", nil, bearer(wrong))
		if name != "empty" && got.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", name, got.Status)
		}
	}
}

// The garbage collector and the quota controller watch every resource, including this one, with the
// controllers' certificate, which has no UID.
func TestUserWithoutUIDHasNoTokens(t *testing.T) {
	c := kit.Shared(t)
	if names, err := c.TryOC("get", "useroauthaccesstokens", "-o", "name"); err != nil || names != "" {
		t.Errorf("tokens %q, %v, want none", names, err)
	}
}
