package provider

import (
	"fmt"
	"net/http"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"

	"github.com/slipway-platform/slipway/internal/stringsource"
	"github.com/slipway-platform/slipway/oauth/idp/external"
	"github.com/slipway-platform/slipway/oauth/idp/github"
	"github.com/slipway-platform/slipway/oauth/idp/gitlab"
	"github.com/slipway-platform/slipway/oauth/idp/google"
	"github.com/slipway-platform/slipway/oauth/idp/openid"
	"github.com/slipway-platform/slipway/oauth/idp/remote"
)

// newRedirect creates a provider that redirects browsers to another server.
func newRedirect(settings any) (*external.Provider, error) {
	switch s := settings.(type) {
	case *legacyv1.GitHubIdentityProvider:
		client, secret, err := connect(s.CA, s.ClientSecret)
		return github.New(github.Settings{
			ClientID: s.ClientID, ClientSecret: secret, Organizations: s.Organizations, Teams: s.Teams, Host: s.Hostname, Client: client,
		}), err
	case *legacyv1.GitLabIdentityProvider:
		client, secret, err := connect(s.CA, s.ClientSecret)
		legacy := s.Legacy != nil && *s.Legacy
		return gitlab.New(gitlab.Settings{
			URL: s.URL, ClientID: s.ClientID, ClientSecret: secret, Legacy: legacy, Client: client,
		}), err
	case *legacyv1.GoogleIdentityProvider:
		client, secret, err := connect("", s.ClientSecret)
		return google.New(google.Settings{
			ClientID: s.ClientID, ClientSecret: secret, HostedDomain: s.HostedDomain, Client: client,
		}), err
	case *OpenID:
		client, secret, err := connect(s.CA, s.ClientSecret)
		return openid.New(openid.Settings{
			ClientID: s.ClientID, ClientSecret: secret,
			AuthorizeURL: s.URLs.Authorize, TokenURL: s.URLs.Token, UserInfoURL: s.URLs.UserInfo,
			Scopes: s.ExtraScopes, Parameters: s.ExtraAuthorizeParameters,
			ID: s.Claims.ID, PreferredUserName: s.Claims.PreferredUsername, Name: s.Claims.Name, Email: s.Claims.Email, Client: client,
			Keys: openid.Keys{Issuer: s.Issuer},
		}), err
	}
	return nil, fmt.Errorf("%T is not an identity provider", settings)
}

// connect returns the HTTP client and the client secret for a provider. ca is the path of the CA
// bundle that verifies the provider's server.
func connect(ca string, source legacyv1.StringSource) (*http.Client, string, error) {
	secret, err := stringsource.Read(source)
	if err != nil {
		return nil, "", err
	}
	client, err := remote.Client(remote.TLS{CAFile: ca})
	return client, secret, err
}
