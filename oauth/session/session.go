// Package session remembers in a browser who has logged in, for the few minutes in which that person requests tokens.
//
// The cookie holds everything, encrypted and signed, so that a session outlives a restart, every API server knows it, and
// nobody can be given the session of another: there is no number of a session that could be fixed. Sessions end
// on the server by a change of the user's Generation, which is stored with the User.
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

// User is who a session is of.
type User struct {
	// Name and UID are those of the User object; one that is made later under the same name has another UID.
	Name, UID string
	// Generation is what the User had at the login. A logout gives the User another one, which ends all sessions from before.
	Generation string `json:",omitempty"`
}

// Generation is the annotation of a User that holds its generation of sessions. A user who never logged out has none.
const Generation = "oauth.slipway.io/session-generation"

// hostPrefix begins the names of cookies that a browser takes only from this host itself, over TLS and for all paths
// (RFC 6265bis, section 4.1.3.2): no other host of the domain can set them.
const hostPrefix = "__Host-"

// Sessions writes and reads sessions.
type Sessions struct {
	// Name is the cookie's, which begins with __Host-, and MaxAge how long it counts.
	Name   string
	MaxAge time.Duration

	codecs []securecookie.Codec
}

// New makes sessions with secrets, of which the first encrypts and all decrypt.
func New(name string, maxAge time.Duration, secrets []Secret) (*Sessions, error) {
	if len(secrets) == 0 {
		return nil, fmt.Errorf("make sessions: there is no secret")
	}
	s := &Sessions{Name: hostPrefix + strings.TrimPrefix(name, hostPrefix), MaxAge: maxAge}
	for i, secret := range secrets {
		if err := secret.validate(); err != nil {
			return nil, fmt.Errorf("use session secret %d: %w", i, err)
		}
		codec := securecookie.New([]byte(secret.Authentication), []byte(secret.Encryption))
		codec.MaxAge(int(maxAge.Seconds()))
		codec.SetSerializer(securecookie.JSONEncoder{})
		s.codecs = append(s.codecs, codec)
	}
	return s, nil
}

// Start begins a session of a user, in place of any other.
func (s *Sessions) Start(w http.ResponseWriter, user User) error {
	value, err := securecookie.EncodeMulti(s.Name, user, s.codecs...)
	if err != nil {
		return fmt.Errorf("encrypt session: %w", err)
	}
	http.SetCookie(w, cookie(s.Name, value))
	return nil
}

// Clear takes the session out of the browser. The cookie of the former session still counts until the Generation of its
// user changes.
func (s *Sessions) Clear(w http.ResponseWriter) error { return s.Start(w, User{}) }

// User gives whose session a request is of; ok is false when it has none that counts.
func (s *Sessions) User(r *http.Request) (user User, ok bool) {
	sent, err := r.Cookie(s.Name)
	if err != nil || securecookie.DecodeMulti(s.Name, sent.Value, &user, s.codecs...) != nil {
		return User{}, false
	}
	return user, user.Name != "" && user.UID != ""
}

// cookie is one that no script and no other site can read or set. Browsers send it with a link from another site,
// because that is how clients send users here, and not with a form, frame or script of another site.
func cookie(name, value string) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// csrfCookie holds a random value that a form must repeat, which a page of another site cannot know.
const csrfCookie = hostPrefix + "csrf"

// csrfBytes is the entropy of the value.
const csrfBytes = 32

// CSRF gives the value for the forms of a page, and sets the cookie where there is none.
func CSRF(w http.ResponseWriter, r *http.Request) string {
	if sent, err := r.Cookie(csrfCookie); err == nil && len(sent.Value) == base64.RawURLEncoding.EncodedLen(csrfBytes) {
		return sent.Value
	}
	random := make([]byte, csrfBytes)
	_, _ = rand.Read(random) // never fails: the runtime ends the process instead
	value := base64.RawURLEncoding.EncodeToString(random)
	http.SetCookie(w, cookie(csrfCookie, value))
	return value
}

// CheckCSRF tells whether a value that came with a request is the one of the browser's cookie.
func CheckCSRF(r *http.Request, value string) bool {
	sent, err := r.Cookie(csrfCookie)
	return err == nil && sent.Value != "" && subtle.ConstantTimeCompare([]byte(sent.Value), []byte(value)) == 1
}

// State returns the `state` of an OAuth flow that begins in the browser of the request, and sets the cookie
// it is derived from if the browser has none. The value doesn't disclose the one for forms.
func State(w http.ResponseWriter, r *http.Request) string { return stateOf(CSRF(w, r)) }

// CheckState reports whether a `state` belongs to a flow that began in the browser of the request.
func CheckState(r *http.Request, state string) bool {
	sent, err := r.Cookie(csrfCookie)
	return err == nil && sent.Value != "" && subtle.ConstantTimeCompare([]byte(stateOf(sent.Value)), []byte(state)) == 1
}

func stateOf(csrf string) string {
	hash := sha256.Sum256([]byte("OAuth state\n" + csrf))
	return base64.RawURLEncoding.EncodeToString(hash[:])
}
