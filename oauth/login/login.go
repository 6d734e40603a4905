// Package login authenticates users of the OAuth server. It accepts headers that a proxy sets, a
// password in the request, or a session. Otherwise, it shows a login page on this server or
// redirects to another server.
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
	// Name is the provider's name. The names of the provider's Identities begin with it.
	Name string
	// Challenge enables the provider for WWW-Authenticate challenges. Login enables it for login
	// pages.
	Challenge, Login bool
	// Mapping is the method that maps the provider's identities to users.
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
	// PublicURL is the server's URL for browsers, such as https://master:8443.
	PublicURL string
	// AlwaysChoose shows the provider selection page even if there is only one provider.
	AlwaysChoose bool
	// Metrics counts password logins.
	Metrics *Metrics
	// Throttle limits the rate at which clients can guess passwords.
	Throttle *throttle.Throttle
	// Report is called with each error that the administrator must resolve.
	Report func(error)
}

// maxPassword is the maximum length of a password, in bytes.
const maxPassword = 4096

// Authenticate returns the user who sent a request, or nil if the request is not authenticated. A
// password in the request takes precedence over a session. The error is one of the errors in
// package mapping, throttle.ErrThrottled, idp.ErrRefused, or an error from a provider that could
// not check the credentials.
func (s *Server) Authenticate(r *http.Request) (*userv1.User, error) {
	user, err := s.AuthenticateProgram(r)
	if _, _, hasPassword := r.BasicAuth(); user != nil || err != nil || hasPassword {
		return user, err
	}
	return s.fromSession(r)
}

// AuthenticateProgram works like Authenticate, but ignores sessions: a link on another site can
// make a browser send its session cookie, but not a password.
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

// basic tries the password with each provider that supports challenges until a provider accepts the
// password.
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

// present returns a request's path and query. The query includes the form values.
func present(r *http.Request) string {
	if err := r.ParseForm(); err != nil {
		return r.URL.EscapedPath()
	}
	return r.URL.EscapedPath() + "?" + r.Form.Encode()
}
