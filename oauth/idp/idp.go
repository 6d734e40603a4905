// Package idp says what an identity provider is: what knows who logs in. Each provider is a folder of its own, and passes the tests of
// the package conformance.
//
// There are three ways to be one, which are the interfaces: to check a password, to read who a proxy has authenticated from a request's
// headers, and to send the person to another server that sends them back.
package idp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// ErrRefused is a provider's answer that whoever asks is not who they say. Any other error is a provider that cannot tell.
var ErrRefused = errors.New("the identity provider refuses the login")

// Identity is what a provider knows about a person.
type Identity struct {
	// UserName is the person's name at the provider: unique, and the same at every login. It becomes a part of the Identity object's name.
	UserName string
	// PreferredUserName is the name that a new User gets; empty means UserName.
	PreferredUserName string
	// Name is the person's full name and Email their address; empty where the provider does not know.
	Name, Email string
}

// Preferred is the name that a new User gets.
func (i *Identity) Preferred() string {
	if i.PreferredUserName != "" {
		return i.PreferredUserName
	}
	return i.UserName
}

// Extra is what an Identity object keeps of the person, with OpenShift's keys.
func (i *Identity) Extra() map[string]string {
	extra := map[string]string{}
	for key, value := range map[string]string{"name": i.Name, "email": i.Email, "preferred_username": i.PreferredUserName} {
		if value != "" {
			extra[key] = value
		}
	}
	return extra
}

// Password is a provider that checks passwords, in a form or in answer to a Basic challenge.
type Password interface {
	// AuthenticatePassword finds out who has the user name and the password. A wrong pair is ErrRefused; an empty password always is.
	AuthenticatePassword(ctx context.Context, user, password string) (*Identity, error)
}

// Request is a provider in front of the server, which has authenticated the person already.
type Request interface {
	// AuthenticateRequest finds out who a request's headers speak of. A request without such headers, or from someone who may not set
	// them, is ErrRefused.
	AuthenticateRequest(r *http.Request) (*Identity, error)
	// LoginURL is where a browser, and ChallengeURL where another client, is sent to be authenticated, with the address of their present
	// request in place of `${url}` and its query in place of `${query}`; empty where there is none.
	LoginURL(present *url.URL) string
	ChallengeURL(present *url.URL) string
}

// Redirect is a server that authenticates persons by OAuth itself.
type Redirect interface {
	// StartURL is where a browser is sent. The server sends it back to the address callback, with state.
	StartURL(callback, state string) string
	// AuthenticateCallback finds out who has come back to the address callback with a query.
	AuthenticateCallback(ctx context.Context, callback string, query url.Values) (*Identity, error)
}
