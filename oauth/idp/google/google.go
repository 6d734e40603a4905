// Package google implements GoogleIdentityProvider: Google accounts, optionally limited to one
// hosted domain.
package google

import (
	"fmt"
	"net/http"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/external"
	"github.com/slipway-platform/slipway/oauth/idp/openid"
)

// Settings describes the OAuth client registered with Google.
type Settings struct {
	ClientID, ClientSecret string
	// HostedDomain limits logins to accounts in a domain. It is optional.
	HostedDomain string
	// AccountsURL, TokenURL, Issuer and KeysURL replace Google's URLs in tests.
	AccountsURL, TokenURL, Issuer, KeysURL string
	// Client sends requests to Google.
	Client *http.Client
}

// New returns the provider.
func New(s Settings) *external.Provider {
	settings := openid.Settings{
		ClientID: s.ClientID, ClientSecret: s.ClientSecret,
		AuthorizeURL: or(s.AccountsURL, "https://accounts.google.com/o/oauth2/v2/auth"),
		TokenURL:     or(s.TokenURL, "https://oauth2.googleapis.com/token"),
		Scopes:       []string{"profile", "email"},
		ID:           []string{"sub"}, PreferredUserName: []string{"preferred_username", "email"}, Name: []string{"name"}, Email: []string{"email"},
		Client: s.Client,
		Keys:   openid.Keys{Issuer: or(s.Issuer, "https://accounts.google.com"), URL: or(s.KeysURL, "https://www.googleapis.com/oauth2/v3/certs")},
	}
	if s.HostedDomain != "" {
		settings.Parameters = map[string]string{"hd": s.HostedDomain}
		settings.Check = func(claims map[string]any) error {
			if claims["hd"] != s.HostedDomain {
				return fmt.Errorf("the account does not belong to the domain %q: %w", s.HostedDomain, idp.ErrRefused)
			}
			return nil
		}
	}
	return openid.New(settings)
}

func or(value, usual string) string {
	if value != "" {
		return value
	}
	return usual
}
