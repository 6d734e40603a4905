// Package keystone implements KeystonePasswordIdentityProvider for version 3 of OpenStack's
// Keystone API.
package keystone

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/remote"
)

// Provider authenticates users in one domain with one Keystone server.
type Provider struct {
	// URL is Keystone's URL without the version. Domain is the name of the users' domain.
	URL, Domain string
	// UseID is the useKeystoneIdentity setting. If it is true, the unique name is the user's ID, so
	// that a later user with the same name is a different user. Otherwise, the unique name is the
	// user name.
	UseID bool
	// Client sends requests to Keystone.
	Client *http.Client
}

var _ idp.Password = (*Provider)(nil)

// AuthenticatePassword checks the password by requesting a token without a project. It discards the
// token.
func (p *Provider) AuthenticatePassword(ctx context.Context,
	user, password string) (*idp.Identity, error) {
	if user == "" || password == "" {
		return nil, idp.ErrRefused
	}
	body, err := json.Marshal(question(user, password, p.Domain))
	if err != nil {
		return nil, errors.New("create request to Keystone")
	}
	address := strings.TrimSuffix(strings.TrimRight(p.URL, "/"), "/v3") + "/v3/auth/tokens"
	request, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("call Keystone: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	var response struct {
		Token struct {
			User struct{ ID, Name string } `json:"user"`
		} `json:"token"`
	}
	reply, err := remote.JSON(ctx, p.Client, request, &response)
	existing := response.Token.User
	switch {
	case err != nil:
		return nil, err
	case reply.StatusCode == http.StatusUnauthorized:
		return nil, idp.ErrRefused
	case reply.StatusCode != http.StatusCreated:
		return nil, fmt.Errorf("Keystone %s responds with %s", request.URL.Host, reply.Status)
	case existing.ID == "" || existing.Name == "":
		return nil, errors.New("Keystone's response has no user")
	case p.UseID:
		return &idp.Identity{UserName: existing.ID, PreferredUserName: existing.Name}, nil
	}
	return &idp.Identity{UserName: existing.Name}, nil
}

// question returns the body of a request for a token.
func question(user, password, domain string) any {
	type object map[string]any
	return object{"auth": object{
		"identity": object{
			"methods":  []string{"password"},
			"password": object{"user": object{"name": user, "password": password, "domain": object{"name": domain}}},
		},
		"scope": "unscoped",
	}}
}
