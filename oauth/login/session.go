package login

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"

	userv1 "github.com/openshift/api/user/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/oauth/session"
)

// startSession starts a session for a user in the browser.
func (s *Server) startSession(w http.ResponseWriter, user *userv1.User) error {
	return s.Sessions.Start(w, session.User{Name: user.Name, UID: string(user.UID), Generation: user.Annotations[session.Generation]})
}

// fromSession returns the user for the browser's session, or nil if there is no valid session. It
// reads the user from the store instead of a cache, because another API server might have ended the
// session.
func (s *Server) fromSession(r *http.Request) (*userv1.User, error) {
	of, ok := s.Sessions.User(r)
	if !ok {
		return nil, nil
	}
	user, err := s.Users.Get(r.Context(), of.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil // the user was deleted after the login
	case err != nil:
		return nil, fmt.Errorf("find user %q of the session: %w", of.Name, err)
	case !current(of, user):
		return nil, nil
	}
	return user, nil
}

// current reports whether a session belongs to the user and has not ended.
func current(of session.User, user *userv1.User) bool {
	return string(user.UID) == of.UID && user.Annotations[session.Generation] == of.Generation
}

// maxAttempts is the maximum number of attempts to update a user when updates conflict.
const maxAttempts = 5

// endSessions ends the request's session, and all other sessions of the same user, on the server.
// Without a session, it writes nothing.
func (s *Server) endSessions(r *http.Request) error {
	of, ok := s.Sessions.User(r)
	if !ok {
		return nil
	}
	return s.changeGeneration(r.Context(), of.Name, func(user *userv1.User) bool { return current(of, user) })
}

// EndSessionsOf ends all of a user's sessions on the server. uid ensures that it does not affect a
// later user with the same name.
func (s *Server) EndSessionsOf(ctx context.Context, name, uid string) error {
	return s.changeGeneration(ctx, name, func(user *userv1.User) bool { return string(user.UID) == uid })
}

// changeGeneration changes a user's session generation if the user exists and applies returns true.
func (s *Server) changeGeneration(ctx context.Context, name string, applies func(*userv1.User) bool) error {
	var err error
	for range maxAttempts {
		var user *userv1.User
		if user, err = s.Users.Get(ctx, name); apierrors.IsNotFound(err) || err == nil && !applies(user) {
			return nil
		}
		if err == nil {
			changed := user.DeepCopy()
			metav1.SetMetaDataAnnotation(&changed.ObjectMeta, session.Generation, rand.Text())
			_, err = s.Users.Update(ctx, changed)
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("end sessions of user %q: %w", name, err)
	}
	return nil
}
