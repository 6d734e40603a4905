// Package login authenticates users of the OAuth server: by headers of a proxy, a password in the
// request, a session, or a login page of this server or another server.
//
// Source: OpenShift 3.9 Architecture, 4.1.4.4 to 4.1.4.6.
package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	userv1 "github.com/openshift/api/user/v1"

	"github.com/slipway-platform/slipway/internal/clientaddr"
	"github.com/slipway-platform/slipway/internal/throttle"
	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/mapping"
	"github.com/slipway-platform/slipway/oauth/page"
	"github.com/slipway-platform/slipway/oauth/session"
	"github.com/slipway-platform/slipway/oauth/store"
)

// Provider is a configured identity provider. Exactly one of Password, Request and Redirect is set.
type Provider struct {
	// Name is the provider's name, with which the names of its Identities begin.
	Name string
	// Challenge enables the provider for WWW-Authenticate challenges, Login for login pages.
	Challenge, Login bool
	// Mapping is the method that maps its identities to users.
	Mapping mapping.Method

	Password idp.Password
	Request  idp.Request
	Redirect idp.Redirect
}

// Server authenticates requests and shows login pages.
type Server struct {
	Providers []Provider
	Mapper    *mapping.Mapper
	Users     store.Objects[*userv1.User]
	Sessions  *session.Sessions
	Pages     *page.Pages
	// PublicURL is the server's address for browsers, such as https://master:8443.
	PublicURL string
	// AlwaysChoose shows the page of providers even if there is only one.
	AlwaysChoose bool
	// Metrics counts password logins.
	Metrics *Metrics
	// Throttle slows down clients that guess passwords.
	Throttle *throttle.Throttle
	// Report is called with errors that the administrator must resolve.
	Report func(error)
}

// maxPassword limits the length of a password in bytes.
const maxPassword = 4096

// Authenticate returns the user of a request, or nil if the request is not authenticated. A
// password in the request takes precedence over a session. The error is an error of package
// mapping, throttle.ErrThrottled, idp.ErrRefused, or the error of a provider that could not check
// the credentials.
func (s *Server) Authenticate(r *http.Request) (*userv1.User, error) {
	user, err := s.AuthenticateProgram(r)
	if _, _, hasPassword := r.BasicAuth(); user != nil || err != nil || hasPassword {
		return user, err
	}
	return s.fromSession(r)
}

// AuthenticateProgram is Authenticate without sessions. A link on another site makes a browser send
// its session, but not a password.
func (s *Server) AuthenticateProgram(r *http.Request) (*userv1.User, error) {
	for _, provider := range s.Providers {
		if provider.Request == nil {
			continue
		}
		identity, err := provider.Request.AuthenticateRequest(r)
		if err == nil {
			return s.Mapper.User(r.Context(), provider.Name, provider.Mapping, identity)
		}
		if !errors.Is(err, idp.ErrRefused) {
			return nil, err
		}
	}
	if user, password, ok := r.BasicAuth(); ok {
		return s.basic(r, user, password)
	}
	return nil, nil
}

// basic checks the password with each provider that supports challenges, until one accepts it.
func (s *Server) basic(r *http.Request, name, password string) (user *userv1.User, err error) {
	end, err := s.Throttle.Try(name, clientaddr.Network(r.RemoteAddr))
	if err != nil {
		return nil, err
	}
	var problems []error
	defer func() { end(user == nil && len(problems) == 0, user != nil) }()
	for _, provider := range s.Providers {
		if provider.Password == nil || !provider.Challenge {
			continue
		}
		user, err = s.check(r.Context(), provider, name, password)
		if err == nil {
			break
		}
		if !errors.Is(err, idp.ErrRefused) {
			problems = append(problems, err)
		}
	}
	s.Metrics.basic(user != nil)
	note(r, name, user != nil, errors.Join(problems...))
	if user != nil {
		return user, nil
	}
	return nil, errors.Join(problems...)
}

// check checks a password with one provider and returns the user.
func (s *Server) check(ctx context.Context, provider Provider,
	name, password string) (*userv1.User, error) {
	if name == "" || password == "" || len(password) > maxPassword {
		return nil, idp.ErrRefused
	}
	identity, err := provider.Password.AuthenticatePassword(ctx, name, password)
	if err != nil {
		if errors.Is(err, idp.ErrRefused) {
			return nil, err
		}
		return nil, fmt.Errorf("authenticate with identity provider %q: %w", provider.Name, err)
	}
	user, err := s.Mapper.User(ctx, provider.Name, provider.Mapping, identity)
	if err != nil {
		return nil, fmt.Errorf("find user of identity provider %q: %w", provider.Name, err)
	}
	return user, nil
}

// present returns the path and query of a request. The query includes the values of a form.
func present(r *http.Request) string {
	if err := r.ParseForm(); err != nil {
		return r.URL.EscapedPath()
	}
	return r.URL.EscapedPath() + "?" + r.Form.Encode()
}
