package login

import (
	"errors"
	"net/http"

	"github.com/slipway-platform/slipway/internal/redirect"
	"github.com/slipway-platform/slipway/oauth/page"
	"github.com/slipway-platform/slipway/oauth/session"
)

// LogoutPath is the path of the page with the form that ends all of the user's sessions.
const LogoutPath = "/logout"

// confirmation contains the data for the logout page.
type confirmation struct{ Action, Then, CSRF, User, Error string }

// ServeLogout ends all of the user's sessions if the server's own form is submitted, and then
// redirects the browser to the page that the request specifies. A GET request only shows the form,
// so that a link on another site cannot end a session.
func (s *Server) ServeLogout(w http.ResponseWriter, r *http.Request) {
	then := redirect.Local(r.FormValue("then"), "/oauth/token/request")
	user, ok := s.Sessions.User(r)
	if !ok {
		http.Redirect(w, r, then, http.StatusFound)
		return
	}
	data := confirmation{Action: LogoutPath, Then: then, User: user.Name}
	switch {
	case r.Method != http.MethodPost:
		data.CSRF = session.CSRF(w, r)
		s.Pages.Show(w, http.StatusOK, page.Logout, data)
	case !session.CheckCSRF(r, r.PostFormValue("csrf")):
		data.CSRF, data.Error = session.CSRF(w, r), message("token_expired")
		s.Pages.Show(w, http.StatusForbidden, page.Logout, data)
	default:
		if err := s.EndSessions(w, r); err != nil {
			s.fail(w, r, http.StatusInternalServerError, "session_error", err)
			return
		}
		http.Redirect(w, r, then, http.StatusFound)
	}
}

// EndSessions ends the request's session, in the browser and on the server, and all other sessions
// of the same user.
func (s *Server) EndSessions(w http.ResponseWriter, r *http.Request) error {
	return errors.Join(s.endSessions(r), s.Sessions.Clear(w))
}
