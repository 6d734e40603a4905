package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

const clientAccounts = `
apiVersion: v1
kind: ServiceAccount
metadata:
  name: proxy
  annotations:
    serviceaccounts.openshift.io/oauth-redirectreference.first: '{"kind": "OAuthRedirectReference", "apiVersion": "v1", "reference": {"kind": "Route", "name": "jenkins"}}'
    serviceaccounts.openshift.io/oauth-redirecturi.first: custom/path
    serviceaccounts.openshift.io/oauth-redirecturi.second: https://elsewhere.example.com/callback
    serviceaccounts.openshift.io/oauth-want-challenges: "true"
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: without}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: lost
  annotations:
    serviceaccounts.openshift.io/oauth-redirectreference.first: '{"kind": "OAuthRedirectReference", "apiVersion": "v1", "reference": {"kind": "Route", "name": "gone"}}'
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: jenkins}
spec: {host: jenkins.example.com, tls: {termination: edge}, to: {kind: Service, name: jenkins}}
`

// serviceAccounts tests service accounts as OAuth clients. Their redirect URIs come from routes.
func serviceAccounts(t *testing.T, _ *fixture, s *server) {
	s.OC("new-project", "clients", "--skip-config-write")
	clients := s.In("clients")
	clients.Apply(clientAccounts)
	ask := func(account string, values url.Values) string {
		values.Set("client_id", "system:serviceaccount:clients:"+account)
		values.Set("response_type", "code")
		return "/oauth/authorize?" + values.Encode()
	}
	const callback = "https://jenkins.example.com/custom/path"
	values := url.Values{"redirect_uri": {callback}, "scope": {"user:info"}, "state": {"a state"}}
	browser := s.browser()
	s.form(browser, "file", "developer", s.DeveloperPassword())
	var approve *url.URL
	s.WaitFor("the router to admit the route", func(context.Context) (err error) {
		got := s.do(browser, http.MethodGet, ask("proxy", values), nil, nil)
		if approve, err = got.Location(); err != nil || approve.Path != "/oauth/approve" {
			return fmt.Errorf("%s, %v, %s", got.Status, approve, got.body)
		}
		return nil
	})
	page := s.do(browser, http.MethodGet, approve.String(), nil, nil)
	form := page.fields()
	form.Set("scope", "user:info")
	form.Set("approve", "1")
	target := s.do(browser, http.MethodPost, "/oauth/approve", form, nil).location(t)
	back := s.do(browser, http.MethodGet, target.String(), nil, nil).location(t)
	if !strings.HasPrefix(back.String(), callback+"?") || back.Query().Get("state") != "a state" {
		t.Fatalf("the user is redirected to %s", back)
	}
	exchange := url.Values{
		"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "redirect_uri": {callback},
		"client_id": {"system:serviceaccount:clients:proxy"}, "client_secret": {strings.TrimSpace(clients.OC("sa", "get-token", "proxy"))},
	}
	got := s.do(s.browser(), http.MethodPost, "/oauth/token", exchange, nil)
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(got.body), &token); err != nil {
		t.Fatalf("%s: %s", got.Status, got.body)
	}
	if user := s.self(token.AccessToken); user.Metadata.Name != "developer" {
		t.Errorf("the user of the client's token is %+v", user)
	}
	if got := s.do(s.browser(), http.MethodGet, ask("proxy", url.Values{"redirect_uri": {"https://elsewhere.example.com/callback"}, "scope": {"user:info"}}), nil, basic("developer", "wrong")); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("wrong password for an account with challenges: %s, %s", got.Status, got.body)
	}
	// Log in again, so that the following requests have a session.
	s.form(browser, "file", "developer", s.DeveloperPassword())
	for name, reason := range map[string]string{
		"another address":   ask("proxy", url.Values{"redirect_uri": {"https://jenkins.example.com.evil.com/"}}),
		"another's project": ask("proxy", url.Values{"redirect_uri": {callback}, "scope": {"role:admin:default"}}),
		"no address":        ask("without", url.Values{}),
		"a missing route":   ask("lost", url.Values{}),
	} {
		got := s.do(browser, http.MethodGet, reason, nil, nil)
		if address, err := got.Location(); got.StatusCode == http.StatusOK || err == nil && address.Query().Get("error") == "" {
			t.Errorf("%s: %s, %v", name, got.Status, address)
		}
	}
	for account, want := range map[string]string{"without": "has no redirectURIs", "lost": `routes.route.openshift.io "gone" not found`} {
		s.WaitFor("the event of "+account, func(context.Context) error {
			if got := clients.OC("describe", "sa", account); !strings.Contains(got, "NoSAOAuthRedirectURIs") || !strings.Contains(got, want) {
				return fmt.Errorf("oc describe sa lacks %q:\n%s", want, got)
			}
			return nil
		})
	}
}

// checkExpiry checks that tokens expire when they reach their maximum age, and after inactivity.
func checkExpiry(t *testing.T, _ *fixture, s *server) {
	s.Apply(`
apiVersion: oauth.openshift.io/v1
kind: OAuthClient
metadata: {name: hasty}
grantMethod: auto
redirectURIs: [https://hasty.example.com/]
accessTokenMaxAgeSeconds: 1
accessTokenInactivityTimeoutSeconds: 300
`)
	browser := s.browser()
	s.form(browser, "file", "developer", s.DeveloperPassword())
	back := s.do(browser, http.MethodGet, "/oauth/authorize?client_id=hasty&response_type=token", nil, nil).location(t)
	fragment, _ := url.ParseQuery(back.Fragment)
	if fragment.Get("expires_in") != "1" || fragment.Get("access_token") == "" {
		t.Errorf("response to the client with a maximum age of one second: %s", back)
	}
	status := func(token string) int {
		return s.do(s.browser(), http.MethodGet, "/apis/user.openshift.io/v1/users/~", nil, bearer(token)).StatusCode
	}
	s.WaitFor("the token to expire", func(context.Context) error {
		if got := status(fragment.Get("access_token")); got != http.StatusUnauthorized {
			return fmt.Errorf("it returns %d", got)
		}
		return nil
	})
	uid := s.OC("get", "user", "developer", "-o", "jsonpath={.metadata.uid}")
	idle, current := s.makeToken("idle", uid, 1), s.makeToken("used", uid, 100)
	if got := status(current); got != http.StatusOK {
		t.Errorf("status with a token in use: %d", got)
	}
	s.WaitFor("extension of a token in use", func(context.Context) error {
		if end, err := strconv.Atoi(s.OC("get", "oauthaccesstoken", hashed("used"), "-o", "jsonpath={.inactivityTimeoutSeconds}")); err != nil || end < 300 {
			return fmt.Errorf("its inactivity timeout is %d seconds, %v", end, err)
		}
		return nil
	})
	result, err := time.Parse(time.RFC3339, s.OC("get", "oauthaccesstoken", hashed("idle"), "-o", "jsonpath={.metadata.creationTimestamp}"))
	if err != nil {
		t.Fatal(err)
	}
	s.WaitFor("two seconds without use", func(context.Context) error {
		if time.Since(result) < 3*time.Second {
			return errors.New("not yet")
		}
		return nil
	})
	if got := status(idle); got != http.StatusUnauthorized {
		t.Errorf("status with an unused token: %d", got)
	}
}

// secretOf returns a token's secret, which is derived from a name.
func secretOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// hashed returns the name of the object for a token whose secret is derived from name.
func hashed(name string) string {
	sum := sha256.Sum256([]byte(secretOf(name)))
	return "sha256~" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// makeToken creates a token for the developer that expires after the given number of seconds of
// inactivity.
func (s *server) makeToken(name, uid string, seconds int) string {
	s.t.Helper()
	s.Apply(fmt.Sprintf(`
apiVersion: oauth.openshift.io/v1
kind: OAuthAccessToken
metadata: {name: %q}
clientName: hasty
userName: developer
userUID: %s
redirectURI: https://hasty.example.com/
scopes: ["user:full"]
expiresIn: 86400
inactivityTimeoutSeconds: %d
`, hashed(name), uid, seconds))
	return "sha256~" + secretOf(name)
}
