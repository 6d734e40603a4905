// Package gitlab implements GitLabIdentityProvider. It authenticates the users of one GitLab server
// with OpenID Connect or, if `legacy: true` is set, with GitLab's own API. GitLab versions before
// 11.1 do not support OpenID Connect.
package gitlab

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/oauth2"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/external"
	"github.com/slipway-platform/slipway/oauth/idp/openid"
)

// Settings describes the OAuth application registered with one GitLab server.
type Settings struct {
	// URL is GitLab's URL, such as https://gitlab.com.
	URL                    string
	ClientID, ClientSecret string
	// Legacy selects GitLab's own API.
	Legacy bool
	// Client sends requests to GitLab.
	Client *http.Client
}

// New returns the provider. Both protocols identify a user by the same number, so the identities do
// not change with the protocol.
func New(s Settings) *external.Provider {
	base := strings.TrimRight(s.URL, "/")
	if !s.Legacy {
		return openid.New(openid.Settings{
			ClientID: s.ClientID, ClientSecret: s.ClientSecret,
			AuthorizeURL: base + "/oauth/authorize", TokenURL: base + "/oauth/token", UserInfoURL: base + "/oauth/userinfo",
			ID: []string{"sub"}, PreferredUserName: []string{"nickname"}, Name: []string{"name"}, Email: []string{"email"}, Client: s.Client,
		})
	}
	return &external.Provider{
		ClientID: s.ClientID, ClientSecret: s.ClientSecret, AuthorizeURL: base + "/oauth/authorize", TokenURL: base + "/oauth/token",
		Scopes: []string{"api"}, Client: s.Client,
		Identify: func(ctx context.Context, api *external.API, _ *oauth2.Token) (*idp.Identity, error) {
			var user struct {
				ID                    int64
				UserName, Name, Email string
			}
			if _, err := api.Get(ctx, base+"/api/v4/user", &user); err != nil || user.ID == 0 {
				return &idp.Identity{}, err
			}
			return &idp.Identity{UserName: strconv.FormatInt(user.ID, 10), PreferredUserName: user.UserName, Name: user.Name, Email: user.Email}, nil
		},
	}
}
