package login

import (
	"crypto/rand"
	"fmt"
	"net/http"

	userv1 "github.com/openshift/api/user/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/oauth/session"
)

// startSession begins the session of a user in the browser.
func (s *Server) startSession(w http.ResponseWriter, user *userv1.User) error {
	return s.Sessions.Start(w, session.User{Name: user.Name, UID: string(user.UID), Generation: user.Annotations[session.Generation]})
}

// fromSession gives the user of the browser's session; nil if there is none that counts. The user is read from the store,
// because another API server may have ended the session a moment ago.
func (s *Server) fromSession(r *http.Request) (*userv1.User, error) {
	of, ok := s.Sessions.User(r)
	if !ok {
		return nil, nil
	}
	user, err := s.Users.Get(r.Context(), of.Name)
	switch {
	case kerrors.IsNotFound(err):
		return nil, nil // deleted since
	case err != nil:
		return nil, fmt.Errorf("find user %q of the session: %w", of.Name, err)
	case !current(of, user):
		return nil, nil
	}
	return user, nil
}

// current tells whether a session is of this user and has not been ended.
func current(of session.User, user *userv1.User) bool {
	return string(user.UID) == of.UID && user.Annotations[session.Generation] == of.Generation
}

// maxAttempts is how often a user that somebody else changes at the same time is read again.
const maxAttempts = 5

// endSessions ends the session of a request on the server, and with it all other sessions of its user. Where there is
// none, it writes nothing.
func (s *Server) endSessions(r *http.Request) error {
	of, ok := s.Sessions.User(r)
	if !ok {
		return nil
	}
	var err error
	for range maxAttempts {
		var user *userv1.User
		if user, err = s.Users.Get(r.Context(), of.Name); kerrors.IsNotFound(err) || err == nil && !current(of, user) {
			return nil
		}
		if err == nil {
			changed := user.DeepCopy()
			if changed.Annotations == nil {
				changed.Annotations = map[string]string{}
			}
			changed.Annotations[session.Generation] = rand.Text()
			_, err = s.Users.Update(r.Context(), changed)
		}
		if !kerrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("end sessions of user %q: %w", of.Name, err)
	}
	return nil
}
