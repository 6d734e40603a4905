// Package idp defines identity providers, which authenticate users. Each provider has its own
// folder and passes the tests of package conformance.
//
// The interfaces are the three kinds of provider: one checks a password, one reads the headers of
// an authenticating proxy, and one redirects the user to another server.
package idp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// ErrRefused means that the provider rejects the login. Any other error means that it could not
// check.
var ErrRefused = errors.New("the identity provider rejects the login")

// Identity is a user as one identity provider knows them.
type Identity struct {
	// UserName is the unique and permanent name at the provider. It becomes part of the Identity
	// object's name.
	UserName string
	// PreferredUserName is the name for a new User. The default is UserName.
	PreferredUserName string
	// Name is the full name, Email the email address. Both are optional.
	Name, Email string
}

// Preferred returns the name for a new User.
func (i *Identity) Preferred() string {
	if i.PreferredUserName != "" {
		return i.PreferredUserName
	}
	return i.UserName
}

// Extra returns the extra information of the Identity object, with OpenShift's keys.
func (i *Identity) Extra() map[string]string {
	extra := map[string]string{}
	for key, value := range map[string]string{"name": i.Name, "email": i.Email, "preferred_username": i.PreferredUserName} {
		if value != "" {
			extra[key] = value
		}
	}
	return extra
}

// Password is a provider that checks passwords from a form or a basic challenge.
type Password interface {
	// AuthenticatePassword returns the identity for a user name and a password. It returns
	// ErrRefused for wrong credentials, and always for an empty password.
	AuthenticatePassword(ctx context.Context, user, password string) (*Identity, error)
}

// Request is a provider that reads the headers of an authenticating proxy.
type Request interface {
	// AuthenticateRequest returns the identity in the headers of a request. It returns ErrRefused if
	// the request has no such headers, or if its client is not allowed to set them.
	AuthenticateRequest(r *http.Request) (*Identity, error)
	// LoginURL and ChallengeURL return the proxy's URL for browsers and for other clients. In the
	// configured URL, they replace `${url}` with the escaped URL of the current request and `${query}`
	// with its query. They return "" if no URL is configured.
	LoginURL(present *url.URL) string
	ChallengeURL(present *url.URL) string
}

// Redirect is a provider that redirects browsers to a server, which authenticates users with OAuth.
type Redirect interface {
	// StartURL returns the URL of the server to which the browser is redirected. The server redirects
	// the browser to callback, with state.
	StartURL(callback, state string) string
	// AuthenticateCallback returns the identity of the user whose browser was redirected to callback
	// with query.
	AuthenticateCallback(ctx context.Context, callback string, query url.Values) (*Identity, error)
}
