// Package anyone has the two identity providers that ask nobody: AllowAllPasswordIdentityProvider and DenyAllPasswordIdentityProvider.
package anyone

import (
	"context"

	"github.com/slipway-platform/slipway/oauth/idp"
)

// Allow accepts each user name with each password that is not empty. It is for trying things out.
type Allow struct{}

// Deny refuses everybody.
type Deny struct{}

var (
	_ idp.Password = Allow{}
	_ idp.Password = Deny{}
)

// AuthenticatePassword names the user that is asked for.
func (Allow) AuthenticatePassword(_ context.Context, user, password string) (*idp.Identity, error) {
	if user == "" || password == "" {
		return nil, idp.ErrRefused
	}
	return &idp.Identity{UserName: user}, nil
}

// AuthenticatePassword refuses.
func (Deny) AuthenticatePassword(context.Context, string, string) (*idp.Identity, error) {
	return nil, idp.ErrRefused
}
