package openid

import (
	"net/http"
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

func TestStartURLContainsConfiguredParameters(t *testing.T) {
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

func TestInvalidTokensAreErrors(t *testing.T) {
	user := map[string]any{"sub": "1"}
	for name, tt := range map[string]struct {
		server *oauthtest.Server
		issuer string // configured issuer; HOST is replaced with the server's host
		want   string
	}{
		"no ID token":                                      {&oauthtest.Server{}, "", "no ID token"},
		"for another client":                               {&oauthtest.Server{Claims: map[string]any{"sub": "1", "aud": []string{"other"}}}, "", "cannot be verified"},
		"for another client, no discovery":                 {&oauthtest.Server{Undescribed: true, Claims: map[string]any{"sub": "1", "aud": []string{"other"}}}, "", "another client"},
		"for several clients, authorized party is another": {&oauthtest.Server{Claims: map[string]any{"sub": "1", "aud": []string{oauthtest.ClientID, "other"}, "azp": "other"}}, "", "another client"},
		"expired":                                    {&oauthtest.Server{Claims: map[string]any{"sub": "1", "exp": time.Now().Add(-time.Hour).Unix()}}, "", "cannot be verified"},
		"expired, no discovery":                      {&oauthtest.Server{Undescribed: true, Claims: map[string]any{"sub": "1", "exp": time.Now().Add(-time.Hour).Unix()}}, "", "expired"},
		"without expiration":                         {&oauthtest.Server{Claims: map[string]any{"sub": "1", "exp": nil}}, "", ""},
		"no user":                                    {&oauthtest.Server{Claims: map[string]any{"sub": ""}}, "", "has no user"},
		"user information of another user":           {&oauthtest.Server{Claims: user, API: map[string]any{"/userinfo": map[string]any{"sub": "2"}}}, "", "a different user"},
		"signed with another key":                    {&oauthtest.Server{Claims: user, Forged: true}, "", "cannot be verified"},
		"signed with another key, configured issuer": {&oauthtest.Server{Claims: user, Forged: true}, "HOST", "cannot be verified"},
		"of another issuer":                          {&oauthtest.Server{Claims: map[string]any{"sub": "1", "iss": "https://other.example.com"}}, "HOST", "cannot be verified"},
		"of an unknown issuer":                       {&oauthtest.Server{Claims: user, Undescribed: true}, "HOST", "has no discovery document"},
		"of another login":                           {&oauthtest.Server{Claims: map[string]any{"sub": "1", "nonce": "other"}}, "", "nonce"},
		"without a nonce":                            {&oauthtest.Server{Claims: map[string]any{"sub": "1", "nonce": nil}, Undescribed: true}, "", "nonce"},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings(t, tt.server)
			host := strings.TrimSuffix(s.TokenURL, "/token")
			s.Keys.Issuer = strings.Replace(tt.issuer, "HOST", host, 1)
			if tt.server.API != nil {
				s.UserInfoURL = host + "/userinfo"
			}
			if got, err := logIn(t, s); got != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestServersWithoutDiscoveryAreTrustedByConnection(t *testing.T) {
	for name, server := range map[string]*oauthtest.Server{
		"without a description": {Undescribed: true, Claims: map[string]any{"sub": "1"}},
		"of another host":       {Forged: true, Claims: map[string]any{"sub": "1", "iss": "https://other.example.com"}},
	} {
		if got, err := logIn(t, settings(t, server)); err != nil || got.UserName != "1" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// logIn logs in with a new browser.
func logIn(t *testing.T, s Settings) (*idp.Identity, error) {
	t.Helper()
	provider, browser := New(s), *s.Client
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := browser.Get(provider.StartURL("https://127.0.0.1:1/callback", "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	back, err := response.Location()
	if err != nil {
		t.Fatal(err)
	}
	return provider.AuthenticateCallback(t.Context(), "https://127.0.0.1:1/callback", back.Query())
}
