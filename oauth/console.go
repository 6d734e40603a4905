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

// Seal encrypts and signs a cookie value with the current session secrets. Every master that has
// these secrets can open the value under the same name.
func (s *Server) Seal(name string, value any) (string, error) {
	return s.current.Load().box.Seal(name, value)
}

// Open decrypts a value that Seal returned for the same name, on this or another master.
func (s *Server) Open(name, text string, into any) error {
	return s.current.Load().box.Open(name, text, into)
}

// Generation returns the session generation of an access token's user. The generation changes each
// time the user logs out. If the token or its user no longer exists, Generation returns a NotFound
// error.
func (s *Server) Generation(ctx context.Context, secret string) (string, error) {
	user, err := s.userOf(ctx, secret)
	if err != nil {
		return "", err
	}
	return user.Annotations[session.Generation], nil
}

// userOf returns the user of an access token. Like token authentication, it reads from the watch
// cache. Its errors never contain the token.
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

// LogOut deletes an access token. It also ends all sessions of the token's user and of the user
// whose session cookie the request contains. Their next login then requires a password. A token
// that does not exist is not an error.
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
