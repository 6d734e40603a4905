package google

import (
	"testing"

	"github.com/slipway-platform/slipway/internal/oauthtest"
	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/conformance"
)

func google(t *testing.T, claims map[string]any, domain string) conformance.Redirect {
	s := (&oauthtest.Server{Authorize: "/auth", Token: "/token", Claims: claims}).Start(t)
	provider := New(Settings{ClientID: oauthtest.ClientID, ClientSecret: oauthtest.ClientSecret, HostedDomain: domain,
		AccountsURL: s.URL + "/auth", TokenURL: s.URL + "/token", Issuer: s.URL, KeysURL: s.URL + oauthtest.KeysPath, Client: s.Client()})
	return conformance.Redirect{Provider: provider, Client: s.Client(), Secret: oauthtest.ClientSecret,
		Want: idp.Identity{UserName: "4711", PreferredUserName: "alice@example.com", Email: "alice@example.com"}}
}

func TestConformance(t *testing.T) {
	claims := map[string]any{"sub": "4711", "email": "alice@example.com", "hd": "example.com"}
	t.Run("any domain", google(t, claims, "").Test)
	t.Run("hosted domain", google(t, claims, "example.com").Test)
}

func TestAccountsOfOtherDomainsAreRejected(t *testing.T) {
	for name, claims := range map[string]map[string]any{
		"another domain": {"sub": "4711", "hd": "other.com"},
		"no domain":      {"sub": "4711", "email": "alice@example.com"},
	} {
		t.Run(name, google(t, claims, "example.com").TestRefused)
	}
}
