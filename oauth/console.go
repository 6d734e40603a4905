package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	oauthv1 "github.com/openshift/api/oauth/v1"
	userv1 "github.com/openshift/api/user/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/oauth/session"
	"github.com/slipway-platform/slipway/oauth/token"
)

// Seal encrypts and signs a value for the cookie of a name with the current session secrets. All
// masters with these secrets open it.
func (s *Server) Seal(name string, value any) (string, error) {
	return s.current.Load().box.Seal(name, value)
}

// Open reads a value that Seal of this or another master returned for the same name.
func (s *Server) Open(name, text string, into any) error {
	return s.current.Load().box.Open(name, text, into)
}

// Generation returns the generation of the sessions of an access token's user. It changes at each
// logout of the user. The error is one of kind not found if the token or its user is gone.
func (s *Server) Generation(ctx context.Context, secret string) (string, error) {
	user, err := s.userOf(ctx, secret)
	if err != nil {
		return "", err
	}
	return user.Annotations[session.Generation], nil
}

// userOf returns the user of an access token. The watch cache is enough, as for the authentication
// with the token. An error never names the token.
func (s *Server) userOf(ctx context.Context, secret string) (*userv1.User, error) {
	stale := apierrors.NewNotFound(oauthv1.Resource("oauthaccesstokens"), "")
	name, ok := token.Name(secret)
	if !ok {
		return nil, stale
	}
	access, err := s.objects.tokens.Cached(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, stale
	case err != nil:
		return nil, errors.New("read access token: the store cannot be read")
	}
	user, err := s.objects.users.Cached(ctx, access.UserName)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read user %q of access token: %w", access.UserName, err)
	case string(user.UID) != access.UserUID:
		return nil, stale
	}
	return user, nil
}

// LogOut deletes an access token, and ends all sessions of its user and of the request's user, so
// that the next login asks for a password. A token that does not exist is not an error.
func (s *Server) LogOut(w http.ResponseWriter, r *http.Request, secret string) error {
	login := s.current.Load().login
	user, err := s.userOf(r.Context(), secret)
	switch {
	case err == nil:
		err = login.EndSessionsOf(r.Context(), user.Name, string(user.UID))
	case apierrors.IsNotFound(err):
		err = nil
	}
	return errors.Join(s.revoke(r.Context(), secret), err, login.EndSessions(w, r))
}

// revoke deletes an access token.
func (s *Server) revoke(ctx context.Context, secret string) error {
	name, ok := token.Name(secret)
	if !ok {
		return nil
	}
	if err := s.objects.tokens.Delete(ctx, name); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete access token: %w", err)
	}
	return nil
}
