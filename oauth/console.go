package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	kerrors "k8s.io/apimachinery/pkg/api/errors"

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

// LogOut deletes an access token, and ends the sessions of the request's user, so that the next
// login asks for a password. A token that does not exist is not an error.
func (s *Server) LogOut(w http.ResponseWriter, r *http.Request, secret string) error {
	return errors.Join(s.revoke(r.Context(), secret), s.current.Load().login.EndSessions(w, r))
}

// revoke deletes an access token.
func (s *Server) revoke(ctx context.Context, secret string) error {
	name, ok := token.Name(secret)
	if !ok {
		return nil
	}
	if err := s.objects.tokens.Delete(ctx, name); err != nil && !kerrors.IsNotFound(err) {
		return fmt.Errorf("delete access token: %w", err)
	}
	return nil
}
