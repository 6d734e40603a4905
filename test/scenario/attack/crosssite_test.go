package attack

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// tokenLink logs in the developer and returns the path of the page that displays the token.
func (s *site) tokenLink(browser *http.Client) string {
	s.t.Helper()
	s.logIn(browser)
	path := "/oauth/token/request"
	for range 3 {
		location := s.get(browser, path).Header.Get("Location")
		if path = strings.TrimPrefix(location, s.url); strings.HasPrefix(path, "/oauth/token/display?") {
			return path
		}
	}
	s.t.Fatalf("the browser is sent to %s", path)
	return ""
}

func TestAttackerCannotGiveTokenToAnotherBrowser(t *testing.T) {
	web := siteOf(t, kit.Shared(t))
	attacker, victim := web.browser(nil), web.browser(nil)
	link := web.tokenLink(attacker)
	query, err := url.ParseQuery(link[strings.Index(link, "?")+1:])
	if err != nil {
		t.Fatal(err)
	}
	if got := web.get(victim, link); strings.Contains(got.body, "Display token") {
		t.Errorf("the victim opens the link of another user and sees %s", got.body)
	}
	form := url.Values{"code": {query.Get("code")}, "csrf": {web.csrf(victim, "/login")}}
	if got := web.post(victim, "/oauth/token/display", form); got.StatusCode != http.StatusBadRequest || strings.Contains(got.body, "sha256~") {
		t.Errorf("the victim's browser gets %s %s", got.Status, got.body)
	}
	form.Set("csrf", web.csrf(attacker, link))
	if got := web.post(attacker, "/oauth/token/display", form); !strings.Contains(got.body, "<pre>sha256~") {
		t.Errorf("the browser that requested the token gets %s %s", got.Status, got.body)
	}
}

func TestOtherSiteCannotEndSession(t *testing.T) {
	web := siteOf(t, kit.Shared(t))
	browser := web.browser(nil)
	web.logIn(browser)
	web.get(browser, "/logout")
	web.post(browser, "/logout", url.Values{})
	web.post(browser, "/logout", url.Values{"csrf": {web.csrf(web.browser(nil), "/login")}})
	const ask = "/oauth/authorize?client_id=openshift-browser-client&response_type=code"
	if got := web.get(browser, ask); !strings.Contains(got.Header.Get("Location"), "code=") {
		t.Errorf("the session has ended: %s to %q", got.Status, got.Header.Get("Location"))
	}
}

// TestOtherSiteCannotUseSessionForProgram requests the URL from which `oc login` gets tokens, with
// the session of a logged-in browser.
func TestOtherSiteCannotUseSessionForProgram(t *testing.T) {
	web := siteOf(t, kit.Shared(t))
	browser := web.browser(nil)
	web.logIn(browser)
	got := web.get(browser, "/oauth/authorize?client_id=openshift-challenging-client&response_type=token")
	if got.StatusCode != http.StatusUnauthorized || got.Header.Get("Location") != "" {
		t.Errorf("a link gets %s to %q", got.Status, got.Header.Get("Location"))
	}
	const ask = "/oauth/authorize?client_id=openshift-browser-client&response_type=code"
	if got := web.get(browser, ask); !strings.Contains(got.Header.Get("Location"), "code=") {
		t.Errorf("the session has ended: %s to %q", got.Status, got.Header.Get("Location"))
	}
}

func TestThiefCannotExchangeCodeOfPublicClient(t *testing.T) {
	c := kit.Shared(t)
	web := siteOf(t, c)
	name := c.Namespace + "-public"
	c.Administrator().May("POST", "/apis/oauth.openshift.io/v1/oauthclients", `
apiVersion: oauth.openshift.io/v1
kind: OAuthClient
metadata: {name: `+name+`}
redirectURIs: ["https://app.example.com/callback"]
grantMethod: auto
`)
	t.Cleanup(func() {
		_, err := c.Administrator().Try("DELETE", "/apis/oauth.openshift.io/v1/oauthclients/"+name, "")
		if err != nil {
			t.Error(err)
		}
	})
	browser := web.browser(nil)
	web.logIn(browser)
	const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	ask := func(more url.Values) url.Values {
		t.Helper()
		values := url.Values{"client_id": {name}, "response_type": {"code"}}
		for key, value := range more {
			values[key] = value
		}
		location, err := web.get(browser, "/oauth/authorize?"+values.Encode()).Location()
		if err != nil || location.Host != "app.example.com" || location.Path != "/callback" {
			t.Fatalf("sent to %v, %v", location, err)
		}
		return location.Query()
	}
	for _, more := range []url.Values{
		nil, {"code_challenge": {challenge}}, {"code_challenge": {challenge}, "code_challenge_method": {"plain"}},
	} {
		if got := ask(more); got.Get("error") != "invalid_request" || got.Has("code") {
			t.Errorf("with %v the client gets %v", more, got)
		}
	}
	code := ask(url.Values{"code_challenge": {challenge}, "code_challenge_method": {"S256"}}).Get("code")
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {name}, "code": {code}, "code_verifier": {challenge},
		"redirect_uri": {"https://app.example.com/callback"},
	}
	if got := web.post(browser, "/oauth/token", form); got.StatusCode != http.StatusBadRequest {
		t.Errorf("a thief gets %s %s", got.Status, got.body)
	}
	form.Set("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
	if got := web.post(browser, "/oauth/token", form); got.StatusCode != http.StatusOK {
		t.Errorf("the client gets %s %s", got.Status, got.body)
	}
}

func TestLoginAndLogoutDoNotRedirectToOtherSites(t *testing.T) {
	web := siteOf(t, kit.Shared(t))
	for _, then := range []string{"https://evil.example.com/", "//evil.example.com", `/\evil.example.com`, "/\t/evil.example.com", "javascript:alert(1)"} {
		browser := web.browser(nil)
		query := "?" + url.Values{"then": {then}}.Encode()
		form := url.Values{
			"then": {then}, "csrf": {web.csrf(browser, "/login"+query)}, "username": {"developer"}, "password": {web.DeveloperPassword()},
		}
		login := web.post(browser, "/login", form).Header.Get("Location")
		logout := web.post(browser, "/logout", url.Values{"then": {then}, "csrf": {web.csrf(browser, "/logout"+query)}}).Header.Get("Location")
		if login != "/" || logout != "/oauth/token/request" {
			t.Errorf("%q: the login redirects to %q, the logout to %q", then, login, logout)
		}
	}
}
