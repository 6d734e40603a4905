package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	oauthv1 "github.com/openshift/api/oauth/v1"
	userv1 "github.com/openshift/api/user/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/internal/tenant"
	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/idp/anyone"
	"github.com/slipway-platform/slipway/oauth/scope"
	"github.com/slipway-platform/slipway/oauth/store"
	"github.com/slipway-platform/slipway/oauth/token"
)

func must(t *testing.T, w *fixture, id string) *client.Client {
	t.Helper()
	client, err := w.registry.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestInvalidRequestsRedirectOnlyToClient(t *testing.T) {
	w := newFixture(t, nil)
	tests := []struct {
		name, key, value string
		code             string
		back             bool
	}{
		{"an unknown client", "client_id", "other", "unauthorized_client", false},
		{"no client", "client_id", "", "unauthorized_client", false},
		{"a redirect URI of another site", "redirect_uri", "https://evil.example.com/", "invalid_request", false},
		{"a script as the redirect URI", "redirect_uri", "javascript:alert(1)", "invalid_request", false},
		{"another response type", "response_type", "id_token", "unsupported_response_type", true},
		{"an invalid scope", "scope", "root", "invalid_scope", true},
		{"an unknown challenge method", "code_challenge_method", "MD5", "invalid_request", true},
		{"a broken service account", "client_id", "system:serviceaccount:myproject:broken", "server_error", false},
		{"an unknown service account", "client_id", "system:serviceaccount:myproject:other", "server_error", false},
		{"an unknown project", "client_id", "system:serviceaccount:other:proxy", "server_error", false},
	}
	browser := w.browser()
	w.logIn(browser, "alice", ask(demo()))
	for _, tt := range tests {
		values := demo()
		values.Set(tt.key, tt.value)
		got := w.send(browser, http.MethodGet, ask(values), nil, nil)
		if tt.back {
			query := got.at().Query()
			if !strings.HasPrefix(got.at().String(), app+"?") || query.Get("error") != tt.code || query.Get("state") != "a state" {
				t.Errorf("%s: %s to %s", tt.name, got.Status, got.at())
			}
			continue
		}
		if got.Header.Get("Location") != "" || got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, `"error":"`+tt.code+`"`) {
			t.Errorf("%s: %s %s, %s", tt.name, got.Status, got.at(), got.body)
		}
	}
	twice := demo()
	twice.Add("redirect_uri", "https://evil.example.com/")
	if got := w.get(w.browser(), ask(twice)); got.StatusCode != http.StatusBadRequest || got.Header.Get("Location") != "" {
		t.Errorf("two addresses: %s to %s", got.Status, got.at())
	}
}

func TestLoginDoesNotRedirectToOtherSites(t *testing.T) {
	w := newFixture(t, nil)
	for _, then := range []string{
		"https://evil.example.com/", "//evil.example.com", `/\evil.example.com`, "/\t/evil.example.com", "/\n/evil.example.com", "evil", "javascript:alert(1)", "\\\\evil", "",
	} {
		browser := w.browser()
		form := w.get(browser, "/login?"+url.Values{"then": {then}}.Encode()).fields()
		form.Set("then", then) // simulate a manipulated form
		form.Set("username", "alice")
		form.Set("password", "any")
		if got := w.post(browser, "/login", form); got.Header.Get("Location") != "/" {
			t.Errorf("%q: sent to %q", then, got.Header.Get("Location"))
		}
		if got := w.logOut(browser, "/logout?"+url.Values{"then": {then}}.Encode()); got.Header.Get("Location") != "/oauth/token/request" {
			t.Errorf("%q: the logout redirects to %q", then, got.Header.Get("Location"))
		}
	}
}

func TestFormsOfOtherSitesAreRejected(t *testing.T) {
	w := newFixture(t, nil)
	browser, attacker := w.browser(), w.browser()
	stolen := w.get(attacker, "/login").fields()
	form := w.get(browser, "/login").fields()
	for name, csrf := range map[string]string{"no value": "", "the attacker's value": stolen.Get("csrf"), "a guess": strings.Repeat("A", 43)} {
		form.Set("csrf", csrf)
		form.Set("username", "attacker")
		form.Set("password", "any")
		got := w.post(browser, "/login", form)
		if !strings.Contains(got.Header.Get("Location"), "reason=token_expired") || len(w.users.All()) != 0 {
			t.Errorf("login with %s: %s", name, got.Header.Get("Location"))
		}
	}
	w.logIn(browser, "alice", ask(demo()))
	page := w.get(browser, "/oauth/approve?"+url.Values{"then": {ask(demo())}}.Encode())
	approval := page.fields()
	approval.Set("csrf", stolen.Get("csrf"))
	approval.Set("approve", "1")
	if got := w.post(browser, "/oauth/approve", approval); got.StatusCode != http.StatusForbidden {
		t.Errorf("approval: %s to %s", got.Status, got.at())
	}
	if got := w.post(browser, "/oauth/token/display", url.Values{"code": {"x"}, "csrf": {stolen.Get("csrf")}}); got.StatusCode != http.StatusForbidden {
		t.Errorf("display: %s", got.Status)
	}
}

func TestPagesAreHardened(t *testing.T) {
	w := newFixture(t, nil)
	browser := w.browser()
	w.logIn(browser, "alice", ask(demo()))
	for _, path := range []string{"/login", "/oauth/token/display?code=x", "/oauth/token/implicit", ask(url.Values{})} {
		got := w.get(browser, path)
		policy := got.Header.Get("Content-Security-Policy")
		if got.Header.Get("X-Frame-Options") != "DENY" || !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "default-src 'none'") ||
			got.Header.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(got.Header.Get("Cache-Control"), "no-store") || strings.Contains(got.body, "<script") {
			t.Errorf("%s: %v", path, got.Header)
		}
	}
}

func TestLoginReplacesForeignSession(t *testing.T) {
	w := newFixture(t, nil)
	browser := w.browser()
	// Before the login, the victim's browser has a cookie that the attacker set: the attacker's own
	// session cookie, or any other value.
	attacker := w.browser()
	w.logIn(attacker, "mallory", ask(demo()))
	home, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	browser.Jar.SetCookies(home, slices.DeleteFunc(attacker.Jar.Cookies(home), func(c *http.Cookie) bool { return c.Name != "__Host-ssn" }))
	before := browser.Jar.Cookies(home)[0].Value
	form := w.get(browser, "/login").fields()
	form.Set("username", "alice")
	form.Set("password", "any")
	w.post(browser, "/login", form)
	page := w.get(browser, w.get(browser, ask(demo())).at().String())
	if after := browser.Jar.Cookies(home); slices.ContainsFunc(after, func(c *http.Cookie) bool { return c.Value == before }) || !strings.Contains(page.body, "alice") {
		t.Errorf("the session from before the login is still valid")
	}
	forged := w.browser()
	forged.Jar.SetCookies(home, []*http.Cookie{{Name: "__Host-ssn", Value: "MTczMjE5", Path: "/", Secure: true}})
	if got := w.get(forged, ask(demo())); got.at().Path != "/login" {
		t.Errorf("a forged session: redirected to %s", got.at())
	}
	if err := w.users.Delete(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	if got := w.get(browser, ask(demo())); got.at().Path != "/login" {
		t.Errorf("the session of a deleted user: redirected to %s", got.at())
	}
}

func TestOversizedInputIsRejected(t *testing.T) {
	w := newFixture(t, nil)
	browser := w.browser()
	form := w.get(browser, "/login").fields()
	form.Set("username", "alice")
	form.Set("password", strings.Repeat("x", 1<<20))
	if got := w.post(browser, "/login", form); strings.Contains(got.Header.Get("Location"), "/oauth/") || len(w.users.All()) != 0 {
		t.Errorf("a form of a megabyte: %s to %s", got.Status, got.at())
	}
	got := w.send(w.browser(), http.MethodGet, ask(url.Values{"client_id": {client.Challenging}, "response_type": {"token"}}), nil, func(r *http.Request) {
		r.SetBasicAuth("alice", strings.Repeat("x", 5000))
	})
	if got.StatusCode != http.StatusUnauthorized || len(w.users.All()) != 0 {
		t.Errorf("a password of 5000 bytes: %s", got.Status)
	}
	w.logIn(browser, "alice", ask(demo()))
	if got := w.get(browser, ask(url.Values{"client_id": {strings.Repeat("c", 10_000)}})); got.StatusCode != http.StatusBadRequest {
		t.Errorf("a client of 10000 bytes: %s", got.Status)
	}
}

func TestLongParametersAreNotStored(t *testing.T) {
	w := newFixture(t, nil)
	browser := w.browser()
	long := strings.Repeat("x", scope.MaxParameter)
	target := w.url + "/oauth/token/display"
	w.logIn(browser, "alice", ask(demo()))
	for _, values := range []url.Values{
		{"response_type": {"token"}, "redirect_uri": {target + "?x=" + long}},
		{"response_type": {"code"}, "state": {long + "x"}},
		{"response_type": {"token"}, "scope": {"user:info " + strings.Repeat("role:view:shop ", 300)}},
	} {
		values.Set("client_id", client.Browser)
		got := w.get(browser, ask(values))
		if got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, "can have at most 4096 bytes") || len(w.tokens.All())+len(w.codes.All()) > 0 {
			t.Errorf("%s: %s", got.Status, got.body)
		}
	}
	if got := w.get(browser, ask(url.Values{"client_id": {client.Browser}, "response_type": {"code"}, "state": {long}})); got.at().Query().Get("code") == "" {
		t.Errorf("the longest state: %s", got.Status)
	}
}

// marking records the tenant mark in the context of each Create call.
type marking[T runtime.Object] struct {
	store.Objects[T]
	marks []tenant.Mark
}

// Create implements store.Objects.
func (m *marking[T]) Create(ctx context.Context, object T) (T, error) {
	m.marks = append(m.marks, tenant.Outgoing(ctx))
	return m.Objects.Create(ctx, object)
}

func TestCodesTokensAndGrantsAreWrittenAsUser(t *testing.T) {
	w := newFixture(t, nil)
	tokens, codes := &marking[*oauthv1.OAuthAccessToken]{Objects: w.tokens}, &marking[*oauthv1.OAuthAuthorizeToken]{Objects: w.codes}
	grants := &marking[*oauthv1.OAuthClientAuthorization]{Objects: w.objects.authorizations}
	w.objects.tokens, w.objects.codes, w.objects.authorizations = tokens, codes, grants
	if err := w.complete(); err != nil {
		t.Fatal(err)
	}
	ctx := tenant.Mark{Name: tenant.Public}.With(t.Context())
	user := &userv1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice", UID: "1"}}
	demo := must(t, w, "demo")
	_, tokenErr := w.issuer.Access(ctx, token.To(demo, user, []string{"user:info"}, app))
	_, codeErr := w.issuer.Code(ctx, token.To(demo, user, []string{"user:info"}, app), "", "", "")
	grantErr := w.grants.Grants.Add(ctx, user, demo, []string{"user:info"})
	if err := errors.Join(tokenErr, codeErr, grantErr); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]tenant.Mark{{Name: "user alice"}, {Name: "user alice"}, {Name: "user alice"}}, slices.Concat(tokens.marks, codes.marks, grants.marks)); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}

func TestErrorsDoNotContainInput(t *testing.T) {
	w := newFixture(t, nil)
	got := w.get(w.browser(), "/oauth/token/display?"+url.Values{"error": {"x"}, "error_description": {"<script>alert(1)</script>"}}.Encode())
	if strings.Contains(got.body, "<script>") {
		t.Error("the page runs a script from its address")
	}
	got = w.get(w.browser(), "/login?"+url.Values{"username": {`"><script>`}, "reason": {"<b>"}}.Encode())
	if strings.Contains(got.body, "<script>") || strings.Contains(got.body, "<b>") {
		t.Error("the login page contains text from its URL")
	}
}

func TestServiceAccountsAreClientsOfTheirNamespace(t *testing.T) {
	w := newFixture(t, nil)
	const id = "system:serviceaccount:myproject:proxy"
	values := url.Values{"client_id": {id}, "response_type": {"code"}, "scope": {"user:info role:view:myproject"}}
	browser := w.browser()
	response := w.get(browser, w.logIn(browser, "alice", ask(values)).at().String())
	page := w.get(browser, response.at().String())
	if response.at().Path != "/oauth/approve" || !strings.Contains(page.body, "Service account") || !strings.Contains(page.body, "role:view:myproject") {
		t.Errorf("the page at %s does not request approval: %s", response.at(), page.body)
	}
	form := page.fields()
	form.Set("deny", "1")
	if got := w.post(browser, "/oauth/approve", form); got.at().Query().Get("error") != "access_denied" || got.at().Host != "proxy.example.com" {
		t.Errorf("a denial redirects to %s", got.at())
	}
	values.Set("scope", "user:full")
	if got := w.get(browser, ask(values)); got.at().Query().Get("error") != "invalid_scope" {
		t.Errorf("user:full: %s", got.at())
	}
	some := url.Values{"then": form["then"], "csrf": form["csrf"], "approve": {"1"}, "scope": {"user:info"}}
	back := w.get(browser, w.post(browser, "/oauth/approve", some).at().String())
	if len(w.codes.All()) != 1 || back.at().Query().Get("code") == "" || !slices.Equal(w.codes.All()[0].Scopes, []string{"user:info"}) {
		t.Errorf("part of the scopes: %s, %v", back.at(), w.codes.All())
	}
}

func TestPasswordsCannotBeGuessedQuickly(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Providers[0].Password = anyone.Deny{} })
	challenged := ask(url.Values{"client_id": {client.Challenging}, "response_type": {"token"}})
	guess := func() response {
		return w.send(w.browser(), http.MethodGet, challenged, nil, func(r *http.Request) {
			r.SetBasicAuth("alice", "guess")
			r.Header.Set("X-CSRF-Token", "1")
		})
	}
	statuses := map[int]int{}
	for range 20 {
		statuses[guess().StatusCode]++
	}
	if statuses[http.StatusUnauthorized] == 0 || statuses[http.StatusTooManyRequests] < 10 || len(statuses) != 2 {
		t.Errorf("responses to wrong passwords, by status: %v", statuses)
	}
	if got := guess(); got.Header.Get("Retry-After") == "" || !strings.Contains(got.body, "Too many wrong passwords") {
		t.Errorf("after too many wrong passwords: %s, %s", got.Status, got.body)
	}
	browser := w.browser()
	form := w.get(browser, "/login").fields()
	form.Set("username", "alice")
	form.Set("password", "guess")
	if target := w.post(browser, "/login", form).at(); target.Query().Get("reason") != "too_many" {
		t.Errorf("on the page: %s", target)
	}
	if len(w.errors) != 0 {
		t.Errorf("wrong passwords are reported to the administrator: %v", w.errors)
	}
}

func TestErrorsDoNotRevealExistingClients(t *testing.T) {
	w := newFixture(t, nil)
	ids := []string{
		"demo", "nobody", "openshift-browser-client", "system:serviceaccount:myproject:proxy", "system:serviceaccount:myproject:broken",
		"system:serviceaccount:myproject:nobody", "system:serviceaccount:nowhere:proxy", "", strings.Repeat("c", 10_000),
	}
	// plain returns the status, headers and body of a response. It truncates the body and the
	// Location header at the first question mark, because the queries in them repeat the request.
	plain := func(got response) string {
		location, _, _ := strings.Cut(got.Header.Get("Location"), "?")
		for _, name := range []string{"Date", "Set-Cookie", "Location", "Content-Length"} {
			got.Header.Del(name)
		}
		body, _, _ := strings.Cut(got.body, "?")
		return fmt.Sprint(got.StatusCode, location, body, got.Header)
	}
	for name, send := range map[string]func(id string) response{
		"a browser": func(id string) response {
			return w.get(w.browser(), ask(url.Values{"client_id": {id}, "response_type": {"code"}}))
		},
		"the client's redirect URI": func(id string) response {
			return w.get(w.browser(), ask(url.Values{"client_id": {id}, "response_type": {"code"}, "redirect_uri": {"https://proxy.example.com/oauth"}}))
		},
		"a program": func(id string) response {
			return w.send(w.browser(), http.MethodGet, ask(url.Values{"client_id": {id}, "response_type": {"code"}}), nil, func(r *http.Request) { r.Header.Set("X-CSRF-Token", "1") })
		},
		"the page of approvals": func(id string) response {
			return w.get(w.browser(), "/oauth/approve?"+url.Values{"then": {ask(url.Values{"client_id": {id}})}}.Encode())
		},
		"no secret": func(id string) response {
			return w.exchange("sha256~"+strings.Repeat("A", 43), func(f url.Values) { f.Set("client_id", id); f.Del("client_secret") })
		},
		"a wrong secret": func(id string) response {
			return w.exchange("sha256~"+strings.Repeat("A", 43), func(f url.Values) { f.Set("client_id", id); f.Set("client_secret", "wrong") })
		},
	} {
		first := ""
		for _, id := range ids {
			if id == "" && name == "no secret" {
				continue // this request does not identify a client
			}
			got := plain(send(id))
			if first == "" {
				first = got
			}
			if got != first {
				t.Errorf("%s: the client %.60q returns %.300s, others with %.300s", name, id, got, first)
			}
		}
	}
	for _, action := range w.kube.Actions() {
		if action.GetResource().Resource != "tokenreviews" {
			t.Errorf("before a login: %s %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
	if len(w.notices.pending) != 0 {
		t.Errorf("%d events are queued", len(w.notices.pending))
	}
}

func TestInvalidCodesAreNotLookedUp(t *testing.T) {
	w := newFixture(t, nil)
	w.tokens.Field = func(*oauthv1.OAuthAccessToken, string) string { t.Error("the token store is searched"); return "" }
	browser := must(t, w, client.Browser)
	if _, err := w.issuer.Access(t.Context(), token.Grant{Client: browser, UserName: "alice", UserUID: "1"}); err != nil {
		t.Fatal(err)
	}
	secret, _ := token.New()
	if got := w.exchange(secret, nil); !strings.Contains(got.body, "invalid_grant") {
		t.Errorf("%s: %s", got.Status, got.body)
	}
}

func TestCookieIsInvalidAfterLogout(t *testing.T) {
	w := newFixture(t, nil)
	home, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	first, second, other := w.browser(), w.browser(), w.browser()
	w.logIn(first, "alice", ask(demo()))
	w.logIn(second, "alice", ask(demo()))
	w.logIn(other, "bob", ask(demo()))
	stolen := w.browser()
	stolen.Jar.SetCookies(home, first.Jar.Cookies(home))
	if got := w.get(stolen, ask(demo())); got.at().Path != "/oauth/approve" {
		t.Fatalf("before the logout: %s", got.at())
	}
	w.logOut(first, "/logout")
	for name, browser := range map[string]*http.Client{"the same browser": first, "a copy of its cookies": stolen, "another browser of the user": second} {
		if got := w.get(browser, ask(demo())); got.at().Path != "/login" {
			t.Errorf("after the logout, %s is redirected to %s", name, got.at())
		}
	}
	if got := w.get(other, ask(demo())); got.at().Path != "/oauth/approve" {
		t.Errorf("after the logout of another user: %s", got.at())
	}
	// A logout without a valid cookie ends no sessions and writes nothing.
	w.logIn(first, "alice", ask(demo()))
	version := func() string { user, _ := w.users.Get(t.Context(), "alice"); return user.ResourceVersion }
	before := version()
	w.logOut(stolen, "/logout")
	w.logOut(w.browser(), "/logout")
	if got := w.get(first, ask(demo())); got.at().Path != "/oauth/approve" || version() != before {
		t.Errorf("after the logout with an old cookie: %s, version %s, was %s", got.at(), version(), before)
	}
}
