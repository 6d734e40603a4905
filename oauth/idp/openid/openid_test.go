package openid

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/oauthtest"
	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/conformance"
)

func settings(t *testing.T, server *oauthtest.Server) Settings {
	server.Authorize, server.Token = "/authorize", "/token"
	s := server.Start(t)
	return Settings{
		ClientID: oauthtest.ClientID, ClientSecret: oauthtest.ClientSecret, AuthorizeURL: s.URL + "/authorize?tenant=a", TokenURL: s.URL + "/token",
		Scopes: []string{"email", "openid"}, Parameters: map[string]string{"prompt": "login"},
		ID: []string{"custom", "sub"}, PreferredUserName: []string{"preferred_username", "email"}, Name: []string{"name"}, Email: []string{"email"},
		Client: s.Client(),
	}
}

func TestConformance(t *testing.T) {
	s := settings(t, &oauthtest.Server{Claims: map[string]any{"sub": "4711", "email": "a@example.com", "name": 5}})
	conformance.Redirect{
		Provider: New(s), Client: s.Client, Secret: oauthtest.ClientSecret,
		Want: idp.Identity{UserName: "4711", PreferredUserName: "a@example.com", Email: "a@example.com"},
	}.Test(t)
}

func TestConformanceWithUserInfo(t *testing.T) {
	s := settings(t, &oauthtest.Server{
		Claims: map[string]any{"sub": "4711"},
		API:    map[string]any{"/userinfo": map[string]any{"sub": "4711", "custom": "c1", "name": "Alice A.", "preferred_username": "alice"}},
	})
	s.UserInfoURL = strings.TrimSuffix(s.TokenURL, "/token") + "/userinfo"
	conformance.Redirect{
		Provider: New(s), Client: s.Client, Secret: oauthtest.ClientSecret,
		Want: idp.Identity{UserName: "c1", PreferredUserName: "alice", Name: "Alice A."},
	}.Test(t)
}

func TestTheStartHasWhatIsConfigured(t *testing.T) {
	s := settings(t, &oauthtest.Server{})
	start, err := url.Parse(New(s).StartURL("https://master/callback", "s"))
	if err != nil {
		t.Fatal(err)
	}
	query := start.Query()
	if query.Get("scope") != "openid email" || query.Get("prompt") != "login" || query.Get("tenant") != "a" {
		t.Errorf("query %v", query)
	}
}

func TestTokensThatProveNothingAreErrors(t *testing.T) {
	for name, server := range map[string]*oauthtest.Server{
		"no ID token":             {},
		"for another client":      {Claims: map[string]any{"sub": "1", "aud": []string{"other"}}},
		"for several, by another": {Claims: map[string]any{"sub": "1", "aud": []string{oauthtest.ClientID, "other"}, "azp": "other"}},
		"expired":                 {Claims: map[string]any{"sub": "1", "exp": time.Now().Add(-time.Hour).Unix()}},
		"without an end":          {Claims: map[string]any{"sub": "1", "exp": nil}},
		"of nobody":               {Claims: map[string]any{"sub": ""}},
		"of two persons":          {Claims: map[string]any{"sub": "1"}, API: map[string]any{"/userinfo": map[string]any{"sub": "2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings(t, server)
			if server.API != nil {
				s.UserInfoURL = strings.TrimSuffix(s.TokenURL, "/token") + "/userinfo"
			}
			answer, err := s.Client.Get(New(s).StartURL("https://127.0.0.1:1/callback", "s"))
			if err == nil {
				answer.Body.Close()
			}
			got, err := New(s).AuthenticateCallback(t.Context(), "https://127.0.0.1:1/callback", url.Values{"code": {"code-1"}})
			if got != nil || err == nil {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
