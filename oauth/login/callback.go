package login

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/slipway-platform/slipway/internal/redirect"
	"github.com/slipway-platform/slipway/oauth/session"
)

// callbackPath is the prefix of the paths to which the servers of identity providers redirect
// browsers. The provider's name follows the prefix.
const callbackPath = "/oauth2callback/"

func (s *Server) callback(provider Provider) string {
	return s.PublicURL + callbackPath + url.PathEscape(provider.Name)
}

// ServeCallback handles a browser that an identity provider's server has redirected back. The state
// must contain a value that is derived from the browser's own cookie. Otherwise, a link from an
// attacker could log in the user as another user.
func (s *Server) ServeCallback(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, callbackPath)
	for _, provider := range s.Providers {
		if provider.Name == name && provider.Redirect != nil {
			s.comeBack(w, r, provider)
			return
		}
	}
	s.fail(w, r, http.StatusNotFound, "none", nil)
}

func (s *Server) comeBack(w http.ResponseWriter, r *http.Request, provider Provider) {
	state, then := decodeState(r.URL.Query().Get("state"))
	if !session.CheckState(r, state) {
		s.fail(w, r, http.StatusBadRequest, "token_expired", nil)
		return
	}
	identity, err := provider.Redirect.AuthenticateCallback(r.Context(), s.callback(provider), r.URL.Query())
	if err != nil {
		s.fail(w, r, http.StatusUnauthorized, codeOf(err), err)
		return
	}
	user, err := s.Mapper.User(r.Context(), provider.Name, provider.Mapping, identity)
	if err != nil {
		s.fail(w, r, http.StatusForbidden, codeOf(err), err)
		return
	}
	if err := s.startSession(w, user); err != nil {
		s.fail(w, r, http.StatusInternalServerError, "session_error", err)
		return
	}
	http.Redirect(w, r, then, http.StatusFound)
}

// encodeState encodes the state. The identity provider's server passes the state back when it
// redirects the browser.
func encodeState(browser, then string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(url.Values{"browser": {browser}, "then": {then}}.Encode()))
}

func decodeState(state string) (browser, then string) {
	packed, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil {
		return "", "/"
	}
	values, err := url.ParseQuery(string(packed))
	if err != nil {
		return "", "/"
	}
	return values.Get("browser"), redirect.Local(values.Get("then"), "/")
}
