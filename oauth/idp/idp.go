// Package idp defines identity providers, which authenticate users. Each provider has its own
// folder and passes the tests in package conformance.
//
// There are three kinds of providers, each with its own interface. Password checks a password,
// Request reads the headers that an authenticating proxy sets, and Redirect redirects the user to
// another server.
package idp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// ErrRefused means that the provider rejects the login. Any other error means that the provider
// could not check the credentials.
var ErrRefused = errors.New("the identity provider rejects the login")

// Identity contains the data that one identity provider has about a user.
type Identity struct {
	// UserName is the user's unique and permanent name at the provider. It becomes part of the
	// Identity object's name.
	UserName string
	// PreferredUserName is the name for a new User. It defaults to UserName.
	PreferredUserName string
	// Name is the user's full name, and Email is the user's email address. Both are optional.
	Name, Email string
}

// Preferred returns the name for a new User.
func (i *Identity) Preferred() string {
	if i.PreferredUserName != "" {
		return i.PreferredUserName
	}
	return i.UserName
}

// Extra returns the extra information for the Identity object, with OpenShift's keys.
func (i *Identity) Extra() map[string]string {
	extra := map[string]string{}
	for key, value := range map[string]string{"name": i.Name, "email": i.Email, "preferred_username": i.PreferredUserName} {
		if value != "" {
			extra[key] = value
		}
	}
	return extra
}

// Password is a provider that checks passwords. A password comes from a form, or from the response
// to a basic challenge.
type Password interface {
	// AuthenticatePassword returns the identity for a user name and password. It returns ErrRefused
	// for wrong credentials and for an empty password.
	AuthenticatePassword(ctx context.Context, user, password string) (*Identity, error)
}

// Request is a provider that reads headers set by an authenticating proxy.
type Request interface {
	// AuthenticateRequest returns the identity in the request headers. It returns ErrRefused if the
	// request does not have the headers, or if its client is not allowed to set them.
	AuthenticateRequest(r *http.Request) (*Identity, error)
	// LoginURL and ChallengeURL return the proxy's URL for browsers and for other clients. In the
	// configured URL, they replace `${url}` with the escaped URL of the current request and
	// `${query}` with the query of that request. They return "" if no URL is configured.
	LoginURL(present *url.URL) string
	ChallengeURL(present *url.URL) string
}

// Redirect is a provider that redirects browsers to a server, which authenticates users with OAuth.
type Redirect interface {
	// StartURL returns the server URL that the browser is redirected to. The server then redirects
	// the browser to callback, with state.
	StartURL(callback, state string) string
	// AuthenticateCallback returns the identity of the user whose browser the server has redirected
	// to callback. query is the query of that redirect.
	AuthenticateCallback(ctx context.Context, callback string, query url.Values) (*Identity, error)
}
