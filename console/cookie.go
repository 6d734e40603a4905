package console

import (
	"crypto/subtle"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The cookies. Browsers accept names with __Host- only from this host, over TLS and for all paths.
const (
	sessionCookie = "__Host-openshift-console"
	loginCookie   = "__Host-openshift-console-login"
)

// session is the content of sessionCookie.
type session struct {
	// Token is the access token of the user.
	Token string
	// CSRF must be repeated in csrfHeader by every request to the API.
	CSRF string
	// Generation is the generation of the user's sessions at the login. Every logout of the user
	// changes it, which ends this session.
	Generation string
	// Expires is when the token expires. The zero time is never.
	Expires time.Time
}

// loginTimeout limits the time from the start of a login to its end.
const loginTimeout = 15 * time.Minute

// login is the content of loginCookie.
type login struct {
	// State and Verifier belong to the OAuth flow that this browser began.
	State, Verifier string
	// Then is the path to which the browser returns.
	Then    string
	Expires time.Time
}

// csrfHeader repeats session.CSRF. Pages of other sites, and documents that the API serves, can
// neither read it nor make a browser send it.
const csrfHeader = "X-CSRF-Token"

// session returns the session of a request. ok is false if there is none, or if it has expired or
// was ended by a logout.
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

// confirms reports whether a request proves that a page of the console sent it.
func (of session) confirms(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(of.CSRF)) == 1 && of.CSRF != ""
}

func (s *server) open(r *http.Request, name string, into any) bool {
	cookie, err := r.Cookie(name)
	return err == nil && s.Sessions.Open(name, cookie.Value, into) == nil
}

// set seals a value in a cookie that lasts until the browser ends.
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
