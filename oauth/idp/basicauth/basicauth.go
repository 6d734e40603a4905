// Package basicauth implements BasicAuthPasswordIdentityProvider: a remote server checks the user
// name and password with HTTP basic authentication.
//
// The server responds to wrong credentials with 401, and otherwise with 200 and a JSON object:
// `sub` is the user's unique name; `name`, `email` and `preferred_username` are optional. Source:
// OpenShift 3.11, Configuring Authentication, "Basic Authentication (Remote)".
package basicauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/remote"
)

// Provider checks passwords with one server.
type Provider struct {
	// URL is the server's URL. The scheme must be https.
	URL string
	// Client sends the requests.
	Client *http.Client
}

var _ idp.Password = (*Provider)(nil)

// userInfo is the user description in a server response.
type userInfo struct {
	Subject           string `json:"sub"`
	Name              string `json:"name"`
	Email             string `json:"email"`
	PreferredUserName string `json:"preferred_username"`
	Error             string `json:"error"`
}

// AuthenticatePassword checks the password with the server.
func (p *Provider) AuthenticatePassword(ctx context.Context,
	user, password string) (*idp.Identity, error) {
	// Basic authentication separates the user name from the password with a colon, so a user name
	// cannot contain a colon.
	if user == "" || password == "" || strings.ContainsAny(user, ":\x00\r\n") {
		return nil, idp.ErrRefused
	}
	request, err := http.NewRequest(http.MethodGet, p.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("call identity provider: %w", err)
	}
	request.SetBasicAuth(user, password)
	request.Header.Set("Accept", "application/json")
	var info userInfo
	response, err := remote.JSON(ctx, p.Client, request, &info)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode == http.StatusUnauthorized:
		return nil, idp.ErrRefused
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("identity provider %s responds with %s", request.URL.Host, response.Status)
	case info.Error != "":
		return nil, fmt.Errorf("identity provider %s responds with an error", request.URL.Host)
	case info.Subject == "":
		return nil, errors.New("the identity provider's response has no user: sub is missing")
	}
	return &idp.Identity{UserName: info.Subject, PreferredUserName: info.PreferredUserName, Name: info.Name, Email: info.Email}, nil
}
