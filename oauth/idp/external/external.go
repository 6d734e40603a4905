// Package external implements the common part of OAuth 2 identity providers. The provider redirects
// the browser to a server. The browser returns with a code, and the provider exchanges the code for
// a token. With the token, the provider then reads the user's data.
package external

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"golang.org/x/oauth2"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/remote"
)

// Provider authenticates users with one server.
type Provider struct {
	// ClientID and ClientSecret are the credentials of the client registered with the server.
	ClientID, ClientSecret string
	// AuthorizeURL and TokenURL are the server's endpoints. Scopes contains the requested scopes.
	// Parameters is added to the query of AuthorizeURL.
	AuthorizeURL, TokenURL string
	Scopes                 []string
	Parameters             map[string]string
	// Nonce means that StartURL sends a nonce derived from the state. OpenID Connect servers add
	// the nonce to ID tokens.
	Nonce bool
	// Client sends requests to the server.
	Client *http.Client
	// Identify returns the user to whom the token belongs. api sends requests with the token.
	Identify func(ctx context.Context, api *API, token *oauth2.Token) (*idp.Identity, error)
}

var _ idp.Redirect = (*Provider)(nil)

func (p *Provider) config(callback string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, RedirectURL: callback, Scopes: p.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: p.AuthorizeURL, TokenURL: p.TokenURL},
	}
}

// StartURL returns the URL of the server's login page. Its query contains the callback URL and the
// state.
func (p *Provider) StartURL(callback, state string) string {
	var options []oauth2.AuthCodeOption
	for name, value := range p.Parameters {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	if p.Nonce {
		options = append(options, oauth2.SetAuthURLParam("nonce", nonce(state)))
	}
	return p.config(callback).AuthCodeURL(state, options...)
}

// nonce derives a value from a login's state. The nonce ties an ID token to the state, and thus to
// a browser, without revealing the state to anyone who reads the token.
func nonce(state string) string {
	sum := sha256.Sum256([]byte("nonce of a login\n" + state))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// AuthenticateCallback exchanges the code in a query for a token and returns the user. It returns
// idp.ErrRefused if the query has the error access_denied.
func (p *Provider) AuthenticateCallback(ctx context.Context, callback string,
	query url.Values) (*idp.Identity, error) {
	switch {
	case query.Get("error") == "access_denied":
		return nil, idp.ErrRefused
	case query.Get("error") != "":
		return nil, errors.New("the identity provider reports an error")
	case query.Get("code") == "":
		return nil, errors.New("the identity provider sent no code")
	}
	token, err := p.config(callback).Exchange(context.WithValue(ctx, oauth2.HTTPClient, p.Client), query.Get("code"))
	if err != nil {
		return nil, explain(err)
	}
	identity, err := p.Identify(ctx, &API{Nonce: nonce(query.Get("state")), client: p.Client, token: token.AccessToken}, token)
	if err != nil {
		return nil, err
	}
	if identity.UserName == "" {
		return nil, errors.New("the identity provider's response has no user")
	}
	return identity, nil
}

// explain describes an error of a code exchange. It omits the request and the response, because
// they can contain secrets.
func explain(err error) error {
	var rejection *oauth2.RetrieveError
	if errors.As(err, &rejection) && rejection.Response != nil {
		return fmt.Errorf("exchange code at identity provider: it responds with %s", rejection.Response.Status)
	}
	var unreachable *url.Error
	if errors.As(err, &unreachable) {
		return fmt.Errorf("exchange code at identity provider: %w", unreachable.Err)
	}
	return errors.New("exchange code at identity provider: the response contains no token")
}

// API sends requests with the user's token.
type API struct {
	// Nonce is the nonce that the ID token of this login must contain.
	Nonce string

	client *http.Client
	token  string
}

// Get sends a GET request to a URL, decodes the JSON response into result and returns the response
// headers. Any status other than 200 is an error.
func (a *API) Get(ctx context.Context, address string, result any) (http.Header, error) {
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("call identity provider: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Accept", "application/json")
	response, err := remote.JSON(ctx, a.client, request, result)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("identity provider %s responds with %s", request.URL.Host, response.Status)
	}
	return response.Header, nil
}
