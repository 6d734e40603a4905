package console

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

// Parameters of the login page. passedParameter marks a request that has been redirected to the
// console's address. It prevents a redirect loop if a proxy changes the Host header.
const (
	thenParameter   = "then"
	passedParameter = "public"
)

// serveLogin redirects the browser to the OAuth server. A login on another host is first redirected
// to the console's address, because the OAuth server later redirects the browser to that address.
func (s *server) serveLogin(w http.ResponseWriter, r *http.Request) {
	then := local(r.URL.Query().Get(thenParameter))
	if public, err := url.Parse(s.consoleURL()); err == nil && public.Host != r.Host && !r.URL.Query().Has(passedParameter) {
		query := url.Values{thenParameter: {then}, passedParameter: {""}}
		http.Redirect(w, r, s.consoleURL()+loginPath+"?"+query.Encode(), http.StatusFound)
		return
	}
	start := login{State: rand.Text(), Verifier: rand.Text() + rand.Text(), Then: then, Expires: time.Now().Add(loginTimeout)}
	// The OAuth server, or an identity provider behind it, is a different site, so the cookie cannot
	// use the strict SameSite mode.
	if err := s.set(w, loginCookie, start, http.SameSiteLaxMode); err != nil {
		s.fail(w, r, "server_error", err)
		return
	}
	challenge := sha256.Sum256([]byte(start.Verifier))
	query := url.Values{
		"client_id": {s.ClientID}, "response_type": {"code"}, "redirect_uri": {s.redirectURI()}, "state": {start.State},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}
	http.Redirect(w, r, s.masterURL()+s.AuthorizePath+"?"+query.Encode(), http.StatusFound)
}

func (s *server) redirectURI() string { return s.consoleURL() + callbackPath }

// serveCallback completes a login that this browser started: it exchanges the code for a token and
// starts a new session. The new session replaces any existing session.
func (s *server) serveCallback(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var start login
	ok := s.open(r, loginCookie, &start) && time.Now().Before(start.Expires)
	remove(w, loginCookie)
	switch {
	case !ok || subtle.ConstantTimeCompare([]byte(start.State), []byte(query.Get("state"))) != 1:
		s.fail(w, r, "login_expired", nil)
		return
	case query.Get("error") != "":
		s.fail(w, r, query.Get("error"), nil)
		return
	}
	token, err := s.exchange.redeem(r.Context(), s.TokenPath, url.Values{
		"grant_type": {"authorization_code"}, "client_id": {s.ClientID}, "redirect_uri": {s.redirectURI()},
		"code": {query.Get("code")}, "code_verifier": {start.Verifier},
	})
	if err != nil {
		s.fail(w, r, "server_error", err)
		return
	}
	generation, err := s.Sessions.Generation(r.Context(), token.Secret)
	if err != nil {
		s.fail(w, r, "server_error", err)
		return
	}
	started := session{Token: token.Secret, CSRF: rand.Text(), Generation: generation}
	if token.ExpiresIn > 0 {
		started.Expires = time.Now().Add(time.Duration(token.ExpiresIn) * time.Second)
	}
	if err := s.set(w, sessionCookie, started, http.SameSiteStrictMode); err != nil {
		s.fail(w, r, "server_error", err)
		return
	}
	http.Redirect(w, r, local(start.Then), http.StatusFound)
}

// fail redirects to the console's page for failed logins. code is an OAuth error code, or
// login_expired. If cause is not nil, fail reports it.
func (s *server) fail(w http.ResponseWriter, r *http.Request, code string, cause error) {
	if cause != nil {
		s.Report(cause)
	}
	http.Redirect(w, r, errorPath+"?"+url.Values{"error": {code}}.Encode(), http.StatusFound)
}

// serveSession sends the value for csrfHeader to the console's script, or 401 if no user is logged
// in.
func (s *server) serveSession(w http.ResponseWriter, r *http.Request) {
	of, ok := s.session(r)
	if !ok {
		http.Error(w, "No user is logged in.", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct {
		CSRF    string     `json:"csrf"`
		Expires *time.Time `json:"expires,omitempty"`
	}{of.CSRF, optional(of.Expires)})
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// serveLogout ends all of the user's sessions and deletes the session's token. Even if an error
// occurs, it removes the session from the browser.
func (s *server) serveLogout(w http.ResponseWriter, r *http.Request) {
	of, ok := s.session(r)
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "Use POST.", http.StatusMethodNotAllowed)
		return
	case !ok:
		remove(w, sessionCookie)
		w.WriteHeader(http.StatusNoContent)
		return
	case !of.confirms(r):
		http.Error(w, "The request does not come from the console.", http.StatusForbidden)
		return
	}
	remove(w, sessionCookie)
	if err := s.Sessions.LogOut(w, r, of.Token); err != nil {
		s.Report(err)
		http.Error(w, "The token cannot be deleted. It stays valid until it expires.", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// local returns then if it is one of the console's paths, and Path otherwise.
func local(then string) string {
	u, err := url.Parse(then)
	bad := func(c rune) bool { return c <= ' ' || c == '\\' || c == 0x7f }
	if err != nil || u.IsAbs() || u.Host != "" || strings.ContainsFunc(then, bad) || strings.ContainsFunc(u.Path, bad) {
		return Path
	}
	if !strings.HasPrefix(then, Path) || path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") {
		return Path
	}
	return then
}
