// Package basicauth is the identity provider BasicAuthPasswordIdentityProvider: another server, which is sent the user name and the
// password by HTTP's Basic authentication.
//
// The server answers 401 to a wrong pair, and 200 with a JSON object to a right one: `sub` is the person's unique name, `name`, `email` and
// `preferred_username` may follow. Source: OpenShift 3.11, Configuring Authentication, "Basic Authentication (Remote)".
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

// Provider asks one server.
type Provider struct {
	// URL is where it is asked, with https.
	URL string
	// Client reaches it.
	Client *http.Client
}

var _ idp.Password = (*Provider)(nil)

// answer is what the server says of a person.
type answer struct {
	Subject           string `json:"sub"`
	Name              string `json:"name"`
	Email             string `json:"email"`
	PreferredUserName string `json:"preferred_username"`
	Error             string `json:"error"`
}

// AuthenticatePassword asks the server.
func (p *Provider) AuthenticatePassword(ctx context.Context, user, password string) (*idp.Identity, error) {
	// A colon in the name would move the border between it and the password.
	if user == "" || password == "" || strings.ContainsAny(user, ":\x00\r\n") {
		return nil, idp.ErrRefused
	}
	request, err := http.NewRequest(http.MethodGet, p.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("ask identity provider: %w", err)
	}
	request.SetBasicAuth(user, password)
	request.Header.Set("Accept", "application/json")
	var who answer
	reply, err := remote.JSON(ctx, p.Client, request, &who)
	switch {
	case err != nil:
		return nil, err
	case reply.StatusCode == http.StatusUnauthorized:
		return nil, idp.ErrRefused
	case reply.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("identity provider %s answers %s", request.URL.Host, reply.Status)
	case who.Error != "":
		return nil, fmt.Errorf("identity provider %s answers with an error", request.URL.Host)
	case who.Subject == "":
		return nil, errors.New("the answer of the identity provider names nobody: sub is missing")
	}
	return &idp.Identity{UserName: who.Subject, PreferredUserName: who.PreferredUserName, Name: who.Name, Email: who.Email}, nil
}
