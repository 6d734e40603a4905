// Package login finds out who is in front of the OAuth server: from headers of a proxy, a password that came with the request, a session,
// or a login page, of this server or of another one.
//
// Source: OpenShift 3.9 Architecture, 4.1.4.4 to 4.1.4.6.
package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	userv1 "github.com/openshift/api/user/v1"

	"github.com/slipway-platform/slipway/internal/clientaddr"
	"github.com/slipway-platform/slipway/internal/throttle"
	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/mapping"
	"github.com/slipway-platform/slipway/oauth/page"
	"github.com/slipway-platform/slipway/oauth/session"
	"github.com/slipway-platform/slipway/oauth/store"
)

// Provider is a configured identity provider. One of Password, Request and Redirect is set.
type Provider struct {
	// Name begins the names of its identities.
	Name string
	// Challenge lets programs use it in answer to WWW-Authenticate, and Login people on pages.
	Challenge, Login bool
	// Mapping is how its identities get users.
	Mapping mapping.Method

	Password idp.Password
	Request  idp.Request
	Redirect idp.Redirect
}

// Server authenticates requests and shows the pages of a login.
type Server struct {
	Providers []Provider
	Mapper    *mapping.Mapper
	Users     store.Objects[*userv1.User]
	Sessions  *session.Sessions
	Pages     *page.Pages
	// PublicURL is the server's own address for browsers, for instance https://master:8443.
	PublicURL string
	// AlwaysChoose shows the page of providers even when there is only one.
	AlwaysChoose bool
	// Metrics counts logins by password.
	Metrics *Metrics
	// Throttle slows down who guesses passwords.
	Throttle *throttle.Throttle
	// Report takes errors that are the administrator's affair and not the person's.
	Report func(error)
}

// maxPassword is the longest password that is checked, in bytes.
const maxPassword = 4096

// Authenticate gives the user of a request; nil is nobody. A password that came with it is looked at before a session. An error is one of
// package mapping, or a provider's that cannot tell.
func (s *Server) Authenticate(r *http.Request) (*userv1.User, error) {
	for _, provider := range s.Providers {
		if provider.Request == nil {
			continue
		}
		who, err := provider.Request.AuthenticateRequest(r)
		if err == nil {
			return s.Mapper.User(r.Context(), provider.Name, provider.Mapping, who)
		}
		if !errors.Is(err, idp.ErrRefused) {
			return nil, err
		}
	}
	if user, password, ok := r.BasicAuth(); ok {
		return s.basic(r, user, password)
	}
	return s.fromSession(r)
}

// basic asks each provider that takes part in challenges.
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

// check asks one provider about a password and finds the user.
func (s *Server) check(ctx context.Context, provider Provider, name, password string) (*userv1.User, error) {
	if name == "" || password == "" || len(password) > maxPassword {
		return nil, idp.ErrRefused
	}
	who, err := provider.Password.AuthenticatePassword(ctx, name, password)
	if err != nil {
		if errors.Is(err, idp.ErrRefused) {
			return nil, err
		}
		return nil, fmt.Errorf("ask identity provider %q: %w", provider.Name, err)
	}
	user, err := s.Mapper.User(ctx, provider.Name, provider.Mapping, who)
	if err != nil {
		return nil, fmt.Errorf("find user of identity provider %q: %w", provider.Name, err)
	}
	return user, nil
}

// Local gives an address of this server that a browser may be sent to after a step, or fallback for any other text.
func Local(then, fallback string) string {
	bad := func(c rune) bool { return c < ' ' || c == '\\' || c == 0x7f }
	if !strings.HasPrefix(then, "/") || strings.HasPrefix(then, "//") || strings.ContainsFunc(then, bad) {
		return fallback
	}
	if u, err := url.Parse(then); err != nil || u.Host != "" || u.Scheme != "" {
		return fallback
	}
	return then
}

// present is the address of a request on this server, with what came in a form.
func present(r *http.Request) string {
	if err := r.ParseForm(); err != nil {
		return r.URL.EscapedPath()
	}
	return r.URL.EscapedPath() + "?" + r.Form.Encode()
}
