// Package session stores the logged-in user in the browser for the few minutes in which the user
// requests tokens. sessionMaxAgeSeconds in the MasterConfig's sessionConfig sets this time.
//
// The encrypted and signed cookie contains the whole session. Therefore, a session survives
// restarts and works with every API server. Session fixation is impossible, because there is no
// session ID. To end sessions on the server, the server changes the session generation in the User
// object.
package session

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/securecookie"
)

// User identifies a session's user.
type User struct {
	// Name and UID identify the User object. A recreated user has a different UID.
	Name, UID string
	// Generation is the user's session generation at login. A logout changes the user's generation,
	// which ends all earlier sessions.
	Generation string `json:",omitempty"`
}

// Generation is the annotation on a User that contains the generation of the user's sessions. It
// applies to sessions of the login pages and of the web console. The annotation is missing until
// the user's first logout.
const Generation = "oauth.slipway.io/session-generation"

// hostPrefix is a cookie name prefix. Browsers accept a cookie with this prefix only if this host
// set it, over TLS and for all paths (RFC 6265bis, section 4.1.3.2). Other hosts in the domain
// cannot set it.
const hostPrefix = "__Host-"

// Sessions writes and reads sessions.
type Sessions struct {
	// Name is the cookie's name, including __Host-. MaxAge is the session lifetime.
	Name   string
	MaxAge time.Duration

	codecs []securecookie.Codec
}

// New returns Sessions that use the given secrets. The first secret encrypts, and every secret can
// decrypt.
func New(name string, maxAge time.Duration, secrets []Secret) (*Sessions, error) {
	codecs, err := newCodecs(maxAge, secrets)
	if err != nil {
		return nil, err
	}
	name = hostPrefix + strings.TrimPrefix(name, hostPrefix)
	return &Sessions{Name: name, MaxAge: maxAge, codecs: codecs}, nil
}

// Start starts a session for a user and replaces any existing session.
func (s *Sessions) Start(w http.ResponseWriter, user User) error {
	value, err := securecookie.EncodeMulti(s.Name, user, s.codecs...)
	if err != nil {
		return fmt.Errorf("encrypt session: %w", err)
	}
	http.SetCookie(w, cookie(s.Name, value))
	return nil
}

// Clear removes the session from the browser. The old session's cookie stays valid until the user's
// generation changes.
func (s *Sessions) Clear(w http.ResponseWriter) error { return s.Start(w, User{}) }

// User returns the user of the request's session. ok is false if there is no valid session.
func (s *Sessions) User(r *http.Request) (user User, ok bool) {
	cookie, err := r.Cookie(s.Name)
	if err != nil || securecookie.DecodeMulti(s.Name, cookie.Value, &user, s.codecs...) != nil {
		return User{}, false
	}
	return user, user.Name != "" && user.UID != ""
}

// cookie returns a cookie that scripts and other sites can neither read nor set. Browsers send the
// cookie when they follow a link from another site, which OAuth clients require, but not with a
// form, frame or script on another site.
func cookie(name, value string) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// csrfCookie is the name of the cookie with a random value that forms must repeat. Pages on other
// sites cannot read the cookie.
const csrfCookie = hostPrefix + "csrf"

// csrfBytes is the length of the random value, in bytes.
const csrfBytes = 32

// CSRF returns the random value that a page's forms must contain. If the cookie with this value is
// missing, CSRF sets it.
func CSRF(w http.ResponseWriter, r *http.Request) string {
	if cookie, err := r.Cookie(csrfCookie); err == nil && len(cookie.Value) == base64.RawURLEncoding.EncodedLen(csrfBytes) {
		return cookie.Value
	}
	random := make([]byte, csrfBytes)
	_, _ = rand.Read(random) // never fails: the runtime ends the process instead
	value := base64.RawURLEncoding.EncodeToString(random)
	http.SetCookie(w, cookie(csrfCookie, value))
	return value
}

// CheckCSRF reports whether a value matches the browser's cookie.
func CheckCSRF(r *http.Request, value string) bool {
	cookie, err := r.Cookie(csrfCookie)
	return err == nil && cookie.Value != "" && subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(value)) == 1
}

// State returns the `state` parameter for an OAuth flow that starts in the request's browser. State
// derives the parameter from the CSRF cookie, and sets the cookie if it is missing. The parameter
// does not reveal the cookie's value.
func State(w http.ResponseWriter, r *http.Request) string { return stateOf(CSRF(w, r)) }

// CheckState reports whether a `state` parameter belongs to a flow that started in the request's
// browser.
func CheckState(r *http.Request, state string) bool {
	cookie, err := r.Cookie(csrfCookie)
	return err == nil && cookie.Value != "" && subtle.ConstantTimeCompare([]byte(stateOf(cookie.Value)), []byte(state)) == 1
}

func stateOf(csrf string) string {
	hash := sha256.Sum256([]byte("OAuth state\n" + csrf))
	return base64.RawURLEncoding.EncodeToString(hash[:])
}
