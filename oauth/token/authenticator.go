package token

import (
	"context"
	"errors"
	"fmt"
	"time"

	oauthv1 "github.com/openshift/api/oauth/v1"
	userv1 "github.com/openshift/api/user/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/scope"
	"github.com/slipway-platform/slipway/oauth/store"
)

// GroupOAuth is the virtual group that contains all users who authenticate with an access token.
const GroupOAuth = "system:authenticated:oauth"

// Reasons why an existing token is not valid.
var (
	ErrExpired  = errors.New("the token has expired")
	ErrInactive = errors.New("the token has not been used for too long")
	ErrNoUser   = errors.New("the token's user no longer exists")
	ErrNoClient = errors.New("the service account that received the token no longer exists")
)

// Authenticator authenticates access tokens. It reads the token and the user from the API server's
// watch cache, which reflects a deletion within milliseconds. If the cache does not contain an
// object, such as a new token, Authenticator reads the object from the store.
type Authenticator struct {
	Tokens store.Objects[*oauthv1.OAuthAccessToken]
	Users  store.Objects[*userv1.User]
	// Accounts finds the service accounts that are clients.
	Accounts *client.Accounts
	// Groups returns a user's groups.
	Groups func(user string) []string
	// Used, if set, is called when a token with an inactivity timeout is used.
	Used func(*oauthv1.OAuthAccessToken)
}

var _ authenticator.Token = (*Authenticator)(nil)

// AuthenticateToken returns the user of an access token with the user's groups. The user's extra
// information contains the token's scopes.
func (a *Authenticator) AuthenticateToken(ctx context.Context,
	secret string) (*authenticator.Response, bool, error) {
	name, ok := Name(secret)
	if !ok {
		return nil, false, nil
	}
	stored, err := a.Tokens.Cached(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		// The cause could contain the token, so the message does not include it.
		return nil, false, errors.New("find access token: the store cannot be read")
	}
	now := time.Now()
	if expired(stored.CreationTimestamp, stored.ExpiresIn, now) {
		return nil, false, ErrExpired
	}
	if timeout := stored.InactivityTimeoutSeconds; expired(stored.CreationTimestamp, int64(timeout), now) {
		return nil, false, ErrInactive
	} else if timeout > 0 && a.Used != nil {
		a.Used(stored)
	}
	if owned, err := a.Accounts.Owns(ctx, stored.ClientName, stored); err != nil {
		return nil, false, err
	} else if !owned {
		return nil, false, ErrNoClient
	}
	owner, err := a.Users.Cached(ctx, stored.UserName)
	switch {
	case apierrors.IsNotFound(err) || err == nil && string(owner.UID) != stored.UserUID:
		return nil, false, ErrNoUser
	case err != nil:
		return nil, false, fmt.Errorf("find user %q of access token: %w", stored.UserName, err)
	}
	info := &user.DefaultInfo{Name: owner.Name, UID: string(owner.UID), Groups: append(a.Groups(owner.Name), GroupOAuth)}
	if len(stored.Scopes) > 0 {
		info.Extra = map[string][]string{scope.ExtraKey: stored.Scopes}
	}
	return &authenticator.Response{User: info}, true, nil
}
