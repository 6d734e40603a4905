package console

import (
	"crypto/subtle"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Names of the cookies. Browsers accept cookies whose names start with __Host- only from this host,
// over TLS and for all paths.
const (
	sessionCookie = "__Host-openshift-console"
	loginCookie   = "__Host-openshift-console-login"
)

// session is the content of sessionCookie.
type session struct {
	// Token is the user's access token.
	Token string
	// CSRF is a random value. Every API request must repeat it in csrfHeader.
	CSRF string
	// Generation is the generation of the user's sessions at login. Whenever the user logs out, the
	// generation changes, which ends this session.
	Generation string
	// Expires is the time when the token expires. The zero time means that it never expires.
	Expires time.Time
}

// loginTimeout is the maximum duration of a login.
const loginTimeout = 15 * time.Minute

// login is the content of loginCookie.
type login struct {
	// State and Verifier are the values of the OAuth flow that this browser started.
	State, Verifier string
	// Then is the path that the browser is redirected to after the login.
	Then    string
	Expires time.Time
}

// csrfHeader is the header that contains session.CSRF. Pages on other sites, and documents that the
// API serves, can neither read the value nor cause a browser to send the header.
const csrfHeader = "X-CSRF-Token"

// session returns a request's session. ok is false if the request has no valid session, or if the
// user's current generation cannot be read. A session is valid until it expires or a logout ends
// it.
func (s *server) session(r *http.Request) (of session, ok bool) {
	if !s.open(r, sessionCookie, &of) || of.Token == "" || !of.Expires.IsZero() && !time.Now().Before(of.Expires) {
		return session{}, false
	}
	generation, err := s.Sessions.Generation(r.Context(), of.Token)
	if err != nil && !apierrors.IsNotFound(err) {
		s.Report(err)
	}
	if err != nil || generation != of.Generation {
		return session{}, false
	}
	return of, true
}

// confirms reports whether csrfHeader proves that one of the console's pages sent the request.
func (of session) confirms(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(of.CSRF)) == 1 && of.CSRF != ""
}

func (s *server) open(r *http.Request, name string, into any) bool {
	cookie, err := r.Cookie(name)
	return err == nil && s.Sessions.Open(name, cookie.Value, into) == nil
}

// set stores a sealed value in a cookie. The browser keeps the cookie until the browser is closed.
func (s *server) set(w http.ResponseWriter, name string, value any, sameSite http.SameSite) error {
	text, err := s.Sessions.Seal(name, value)
	if err != nil {
		return err
	}
	http.SetCookie(w, cookie(name, text, sameSite))
	return nil
}

func remove(w http.ResponseWriter, name string) {
	removed := cookie(name, "", http.SameSiteLaxMode)
	removed.MaxAge = -1
	http.SetCookie(w, removed)
}

func cookie(name, value string, sameSite http.SameSite) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: sameSite}
}
