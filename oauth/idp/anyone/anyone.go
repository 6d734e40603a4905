// Package anyone implements AllowAllPasswordIdentityProvider and DenyAllPasswordIdentityProvider.
package anyone

import (
	"context"

	"github.com/slipway-platform/slipway/oauth/idp"
)

// Allow accepts any user name with any password that is not empty. Use it only for experiments.
type Allow struct{}

// Deny rejects every login.
type Deny struct{}

var (
	_ idp.Password = Allow{}
	_ idp.Password = Deny{}
)

// AuthenticatePassword accepts the login and returns the given user.
func (Allow) AuthenticatePassword(_ context.Context, user, password string) (*idp.Identity, error) {
	if user == "" || password == "" {
		return nil, idp.ErrRefused
	}
	return &idp.Identity{UserName: user}, nil
}

// AuthenticatePassword rejects the login.
func (Deny) AuthenticatePassword(context.Context, string, string) (*idp.Identity, error) {
	return nil, idp.ErrRefused
}
