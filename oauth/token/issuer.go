package token

import (
	"context"
	"errors"
	"fmt"
	"time"

	oauthv1 "github.com/openshift/api/oauth/v1"
	userv1 "github.com/openshift/api/user/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/tenant"
	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/store"
)

// ErrInvalidCode means that a code does not exist, was used before or has expired.
var ErrInvalidCode = errors.New("the code is not valid")

// Issuer issues codes and access tokens.
type Issuer struct {
	Tokens store.Objects[*oauthv1.OAuthAccessToken]
	Codes  store.Objects[*oauthv1.OAuthAuthorizeToken]
	// Quota limits the number of access tokens for each user.
	Quota *store.Quota[*oauthv1.OAuthAccessToken]
	// MaxAge is the default lifetime of an access token, in seconds. 0 means no limit. CodeMaxAge
	// is the lifetime of a code, in seconds.
	MaxAge, CodeMaxAge int32
	// CodeKeys contains secret keys. The first key signs codes, and every key can verify codes.
	// Verification rejects forged codes without a lookup.
	CodeKeys [][]byte
	// InactivityTimeout is the default number of seconds without use after which an access token
	// expires. 0 means never.
	InactivityTimeout int32
}

// Grant describes the permission that a user gives to a client.
type Grant struct {
	Client      *client.Client
	UserName    string
	UserUID     string
	Scopes      []string
	RedirectURI string
	// Code is the name of the exchanged OAuthAuthorizeToken, if any.
	Code string
}

// To returns a grant by which a user authorizes a client.
func To(c *client.Client, user *userv1.User, scopes []string, redirect string) Grant {
	return Grant{Client: c, UserName: user.Name, UserUID: string(user.UID), Scopes: scopes, RedirectURI: redirect}
}

// Issued is an access token that is sent to a client.
type Issued struct {
	Secret string
	// ExpiresIn is in seconds. 0 means that the token does not expire.
	ExpiresIn int64
	Scopes    []string
}

// Access issues an access token.
func (i *Issuer) Access(ctx context.Context, grant Grant) (Issued, error) {
	secret, name := New()
	token := &oauthv1.OAuthAccessToken{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: grant.Client.Annotations()},
		ClientName: grant.Client.ID, ExpiresIn: int64(or(grant.Client.MaxAge, i.MaxAge)), Scopes: grant.Scopes, RedirectURI: grant.RedirectURI,
		UserName: grant.UserName, UserUID: grant.UserUID, AuthorizeToken: grant.Code,
		InactivityTimeoutSeconds: or(grant.Client.InactivityTimeout, i.InactivityTimeout),
	}
	ctx = onBehalf(ctx, grant)
	if err := i.Quota.Add(ctx, grant.UserName); err != nil {
		return Issued{}, err
	}
	if _, err := i.Tokens.Create(ctx, token); err != nil {
		return Issued{}, fmt.Errorf("store access token of user %q: %w", grant.UserName, err)
	}
	return Issued{Secret: secret, ExpiresIn: token.ExpiresIn, Scopes: grant.Scopes}, nil
}

// onBehalf returns a context for writes on behalf of the grant's user.
func onBehalf(ctx context.Context, grant Grant) context.Context {
	return tenant.Mark{Name: tenant.User(grant.UserName)}.With(ctx)
}

// or returns *value, which is a client's own setting, or usual if value is nil.
func or(value *int32, usual int32) int32 {
	if value != nil {
		return *value
	}
	return usual
}

// Code issues an authorization code. To exchange the code, the client must send the code verifier
// for the given challenge.
func (i *Issuer) Code(ctx context.Context, grant Grant,
	state, challenge, method string) (string, error) {
	secret, name := newCode(i.CodeKeys[0])
	_, err := i.Codes.Create(onBehalf(ctx, grant), &oauthv1.OAuthAuthorizeToken{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: grant.Client.Annotations()},
		ClientName: grant.Client.ID, ExpiresIn: int64(i.CodeMaxAge), Scopes: grant.Scopes, RedirectURI: grant.RedirectURI, State: state,
		UserName: grant.UserName, UserUID: grant.UserUID, CodeChallenge: challenge, CodeChallengeMethod: method,
	})
	if err != nil {
		return "", fmt.Errorf("store code of user %q: %w", grant.UserName, err)
	}
	return secret, nil
}

// Redeem consumes a code if check returns true, and returns the code's grant. Only one of several
// concurrent calls succeeds. If a code is used a second time, it might have been stolen, so Redeem
// revokes the tokens that were issued for the first use (RFC 6749, section 4.1.2).
func (i *Issuer) Redeem(ctx context.Context, c *client.Client, code string,
	check func(*oauthv1.OAuthAuthorizeToken) bool) (Grant, error) {
	name, ok := codeName(code, i.CodeKeys)
	if !ok {
		return Grant{}, ErrInvalidCode
	}
	existing, err := i.Codes.Get(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		if err := i.revoke(ctx, c, name); err != nil {
			return Grant{}, err
		}
		return Grant{}, ErrInvalidCode
	case err != nil:
		return Grant{}, fmt.Errorf("find code: %w", err)
	case expired(existing.CreationTimestamp, existing.ExpiresIn, time.Now()) || existing.ClientName != c.ID || !c.Owns(existing) || !check(existing):
		return Grant{}, ErrInvalidCode
	}
	if err := i.Codes.Delete(ctx, name); apierrors.IsNotFound(err) {
		return Grant{}, ErrInvalidCode
	} else if err != nil {
		return Grant{}, fmt.Errorf("delete code: %w", err)
	}
	return Grant{
		Client: c, UserName: existing.UserName, UserUID: existing.UserUID, Scopes: existing.Scopes, RedirectURI: existing.RedirectURI, Code: name,
	}, nil
}

// revoke deletes the access tokens that a client obtained with a code.
func (i *Issuer) revoke(ctx context.Context, c *client.Client, code string) error {
	tokens, err := i.Tokens.Where(ctx, "authorizeToken", code)
	if err != nil {
		return fmt.Errorf("find tokens of a reused code: %w", err)
	}
	var problems []error
	for _, token := range tokens {
		if token.ClientName != c.ID || !c.Owns(token) {
			continue
		}
		if err := i.Tokens.Delete(ctx, token.Name); err != nil && !apierrors.IsNotFound(err) {
			problems = append(problems, fmt.Errorf("revoke token of a reused code: %w", err))
		}
	}
	return errors.Join(problems...)
}

// expired reports whether more than the given number of seconds has passed since a time. 0 seconds
// means no limit.
func expired(since metav1.Time, seconds int64, now time.Time) bool {
	return seconds > 0 && now.After(since.Add(time.Duration(seconds)*time.Second))
}
