package oauth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	oauthv1 "github.com/openshift/api/oauth/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/store/storetest"
)

// requested logs in a user and requests a token manually. It returns the URL of the page that
// displays the token.
func (w *fixture) requested(browser *http.Client, user string) *url.URL {
	w.t.Helper()
	authorize := w.get(browser, "/oauth/token/request").at()
	display := w.get(browser, w.logIn(browser, user, authorize.String()).at().String()).at()
	if display.Path != "/oauth/token/display" || display.Query().Get("code") == "" {
		w.t.Fatalf("sent to %s", display)
	}
	return display
}

func TestTokenIsDisplayedOnlyToRequestingBrowser(t *testing.T) {
	w := newFixture(t, nil)
	mallory, alice := w.browser(), w.browser()
	display := w.requested(mallory, "mallory")
	target := w.requested(alice, "alice")
	tests := []struct {
		name    string
		browser *http.Client
		address func() url.Values
	}{
		{"a link with the code of another user", alice, display.Query},
		{"the code of another user with the browser's own state", alice, func() url.Values {
			return url.Values{"code": display.Query()["code"], "state": target.Query()["state"]}
		}},
		{"a stolen code", mallory, target.Query},
		{"a browser without a request", w.browser(), display.Query},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			values := tt.address()
			page := w.get(tt.browser, "/oauth/token/display?"+values.Encode())
			form := page.fields()
			form.Set("code", values.Get("code")) // simulate a click on the page's button
			if form.Get("csrf") == "" {
				form.Set("csrf", w.get(tt.browser, "/login").fields().Get("csrf"))
			}
			got := w.post(tt.browser, "/oauth/token/display", form)
			if got.StatusCode != http.StatusBadRequest || strings.Contains(got.body, "sha256~") || len(w.tokens.All()) != 0 {
				t.Errorf("%s: %s", got.Status, got.body)
			}
		})
	}
	for name, page := range map[string]struct {
		browser *http.Client
		address *url.URL
	}{"mallory": {mallory, display}, "alice": {alice, target}} {
		button := w.get(page.browser, page.address.String())
		if got := w.post(page.browser, "/oauth/token/display", button.fields()); !strings.Contains(got.body, "<pre>sha256~") {
			t.Errorf("%s: %s %s", name, got.Status, got.body)
		}
	}
}

func TestDisplayPageDoesNotShowTextOfOtherSites(t *testing.T) {
	w := newFixture(t, nil)
	const text = "Call 555 0100 and read out your password"
	values := url.Values{"error": {"x"}, "error_description": {text}}
	if got := w.get(w.browser(), "/oauth/token/display?"+values.Encode()); strings.Contains(got.body, text) {
		t.Error("the page shows the text of a link")
	}
	browser := w.browser()
	values.Set("state", w.get(browser, "/oauth/token/request").at().Query().Get("state"))
	if got := w.get(browser, "/oauth/token/display?"+values.Encode()); !strings.Contains(got.body, text) {
		t.Error("the page does not show why the server granted no token")
	}
}

func TestOtherSiteCannotLogOut(t *testing.T) {
	w := newFixture(t, nil)
	browser := w.browser()
	w.logIn(browser, "alice", ask(demo()))
	stolen := w.get(w.browser(), "/login").fields().Get("csrf")
	for name, send := range map[string]func() response{
		"a link": func() response { return w.get(browser, "/logout") },
		"a form": func() response { return w.post(browser, "/logout", url.Values{}) },
		"a form with the value of another browser": func() response { return w.post(browser, "/logout", url.Values{"csrf": {stolen}}) },
		"a form with the value in the URL": func() response {
			return w.post(browser, "/logout?csrf="+w.get(browser, "/logout").fields().Get("csrf"), url.Values{})
		},
	} {
		if got := send(); got.Header.Get("Location") != "" || !strings.Contains(got.body, `action="/logout"`) {
			t.Errorf("%s: %s to %s", name, got.Status, got.at())
		}
		if got := w.get(browser, ask(demo())); got.at().Path != "/oauth/approve" {
			t.Fatalf("%s ends the session: redirected to %s", name, got.at())
		}
	}
	if got := w.logOut(browser, "/logout?then=/console"); got.at().Path != "/console" {
		t.Errorf("the form of the server: %s to %s", got.Status, got.at())
	}
	if got := w.get(browser, ask(demo())); got.at().Path != "/login" {
		t.Errorf("after the logout: redirected to %s", got.at())
	}
	if got := w.get(browser, "/logout?then=/console"); got.at().Path != "/console" {
		t.Errorf("a logout without a session: %s to %s", got.Status, got.at())
	}
}

// TestLinkDoesNotUseSessionForProgram opens the URL that programs use to exchange a password for a
// token.
func TestLinkDoesNotUseSessionForProgram(t *testing.T) {
	w := newFixture(t, nil)
	browser := w.browser()
	w.logIn(browser, "alice", ask(demo()))
	link := ask(url.Values{"client_id": {client.Challenging}, "response_type": {"token"}})
	if got := w.get(browser, link); got.StatusCode != http.StatusUnauthorized || len(w.tokens.All()) != 0 {
		t.Errorf("a link of another site: %s to %s, tokens %v", got.Status, got.at(), w.tokens.All())
	}
	withPassword := func(r *http.Request) { r.SetBasicAuth("alice", "any") }
	if got := w.send(browser, http.MethodGet, link, nil, withPassword); !strings.Contains(got.at().Fragment, "access_token=") || len(got.Cookies()) != 0 {
		t.Errorf("with a password: %s to %s, cookies %v", got.Status, got.at(), got.Cookies())
	}
	if got := w.get(browser, ask(demo())); got.at().Path != "/oauth/approve" {
		t.Errorf("the session has ended: redirected to %s", got.at())
	}
}

func TestPublicClientMustSendS256(t *testing.T) {
	w := newFixture(t, nil)
	const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	for _, object := range []*oauthv1.OAuthClient{
		{ObjectMeta: metav1.ObjectMeta{Name: "public"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "old", Annotations: map[string]string{client.ChallengeAnnotation: client.ChallengeOptional}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "secret"}, Secret: "a secret"},
		{ObjectMeta: metav1.ObjectMeta{Name: "rotating"}, AdditionalSecrets: []string{"a secret"}},
	} {
		object.RedirectURIs, object.GrantMethod = []string{app}, oauthv1.GrantHandlerAuto
		if _, err := w.objects.clients.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	browser := w.browser()
	w.logIn(browser, "alice", ask(demo()))
	tests := []struct {
		name, client, response, method string
		want                           string // the error, or "" for a code or a token
	}{
		{"S256", "public", "code", "S256", ""},
		{"plain", "public", "code", "plain", "invalid_request"},
		{"a challenge without a method is plain", "public", "code", "", "invalid_request"},
		{"no challenge", "public", "code", "none", "invalid_request"},
		{"a token needs no challenge", "public", "token", "none", ""},
		{"the client of oc login with S256", client.Challenging, "code", "S256", ""},
		{"the client of oc login with a token", client.Challenging, "token", "none", ""},
		{"the client of oc login with plain", client.Challenging, "code", "plain", "invalid_request"},
		{"the web console", client.WebConsole, "code", "none", "invalid_request"},
		{"the web console with plain", client.WebConsole, "code", "plain", "invalid_request"},
		{"the web console with S256", client.WebConsole, "code", "S256", ""},
		{"the browser's client", client.Browser, "code", "none", ""},
		{"an exempted client with plain", "old", "code", "plain", ""},
		{"an exempted client without a challenge", "old", "code", "none", ""},
		{"a client with a secret", "secret", "code", "plain", ""},
		{"a client with an additional secret", "rotating", "code", "none", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			values := url.Values{"client_id": {tt.client}, "response_type": {tt.response}}
			if tt.method != "none" {
				values.Set("code_challenge", challenge)
				values.Set("code_challenge_method", tt.method)
			}
			got := w.send(browser, http.MethodGet, ask(values), nil, func(r *http.Request) {
				if tt.client == client.Challenging { // this client ignores the session
					r.SetBasicAuth("alice", "any")
				}
			}).at()
			fragment, _ := url.ParseQuery(got.Fragment)
			granted := got.Query().Get("code") != "" || fragment.Get("access_token") != ""
			if got.Query().Get("error") != tt.want || granted != (tt.want == "") {
				t.Errorf("sent to %s", got)
			}
		})
	}
	// The empty secret is invalid for a client that has a secret.
	if _, err := w.registry.Authenticate(t.Context(), "rotating", ""); err == nil {
		t.Error("the empty secret is accepted")
	}
}

func TestOnlyAnotherWebConsoleIsExemptFromChallenges(t *testing.T) {
	const other = "https://console.example.com/"
	for name, tt := range map[string]struct {
		existing *string // existing value of the annotation
		console  string
		want     string
	}{
		"first start": {nil, "", client.ChallengeRequired},
		"the address of the server's own console": {nil, "https://master/console/", client.ChallengeRequired},
		"another console":                         {nil, other, client.ChallengeOptional},
		"default of an earlier version":           {ptr.To(client.ChallengeOptional), "", client.ChallengeRequired},
		"challenge required by the administrator": {ptr.To(client.ChallengeRequired), other, client.ChallengeRequired},
	} {
		t.Run(name, func(t *testing.T) {
			clients := storetest.New[*oauthv1.OAuthClient](oauthv1.Resource("oauthclients"))
			if tt.existing != nil {
				object := &oauthv1.OAuthClient{ObjectMeta: metav1.ObjectMeta{Name: client.WebConsole, Annotations: map[string]string{client.ChallengeAnnotation: *tt.existing}}}
				if _, err := clients.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			if err := ensureClients(t.Context(), clients, "https://master", tt.console, false); err != nil {
				t.Fatal(err)
			}
			got, err := clients.Get(t.Context(), client.WebConsole)
			if err != nil || got.Annotations[client.ChallengeAnnotation] != tt.want {
				t.Errorf("%v, %v, want %s", got.Annotations, err, tt.want)
			}
		})
	}
}
