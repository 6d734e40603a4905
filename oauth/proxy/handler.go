package proxy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/redirect"
)

// Paths that the proxy serves, in addition to callbackPath.
const (
	startPath   = "/oauth/start"
	signOutPath = "/oauth/sign_out"
	healthPath  = "/oauth/healthz"
)

// Headers that identify the user to the application. The proxy removes these headers from clients'
// requests.
const (
	userHeader  = "X-Forwarded-User"
	emailHeader = "X-Forwarded-Email"
	tokenHeader = "X-Forwarded-Access-Token"
)

// schemeHeader contains the scheme of the browser's request.
const schemeHeader = "X-Forwarded-Proto"

// session is the content of the session cookie.
type session struct {
	User string
	// Token is empty unless it is passed to the application.
	Token string
}

// login is the content of the login cookie: the state of a login that the browser has started.
type login struct{ State, Verifier, Then string }

// loginTimeout is the maximum duration of a login.
const loginTimeout = 15 * time.Minute

// handler handles the requests that the proxy receives.
type handler struct {
	Settings
	api     *api
	cookies sealer
	next    http.Handler
}

func newHandler(s Settings, api *api) (*handler, error) {
	cookies, err := newSealer(s.ClientID, s.CookieSecret)
	if err != nil {
		return nil, err
	}
	transport, err := s.transport()
	if err != nil {
		return nil, err
	}
	h := &handler{Settings: s, api: api, cookies: cookies}
	h.next = &httputil.ReverseProxy{Rewrite: h.rewrite, Transport: transport}
	return h, nil
}

// ServeHTTP handles a request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var of session
	switch {
	case r.URL.Path == healthPath:
		_, _ = w.Write([]byte("ok\n"))
	case r.URL.Path == callbackPath:
		h.complete(w, r)
	case r.URL.Path == startPath:
		h.start(w, r, redirect.Local(r.URL.Query().Get("rd"), "/"))
	case r.URL.Path == signOutPath:
		clearCookie(w, h.CookieName)
		http.Error(w, "You are logged out of this application.", http.StatusOK)
	case h.isOpen(r.URL):
		h.pass(w, r, session{})
	case h.cookies.open(r, h.CookieName, &of):
		h.pass(w, r, of)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "Log in first: open the application in a browser.", http.StatusForbidden)
	default:
		h.start(w, r, r.URL.RequestURI())
	}
}

// isOpen reports whether a path can be accessed without a login. A path such as /open/../admin
// requires a login, because the application might interpret it differently.
func (h *handler) isOpen(u *url.URL) bool {
	clean := path.Clean(u.Path)
	if clean != "/" && strings.HasSuffix(u.Path, "/") {
		clean += "/"
	}
	if u.RawPath != "" || u.Path != clean || strings.ContainsAny(u.Path, `;\%`) {
		return false
	}
	return slices.ContainsFunc(h.Open, func(e *regexp.Regexp) bool { return e.MatchString(u.Path) })
}

// start redirects the browser to the OAuth server.
func (h *handler) start(w http.ResponseWriter, r *http.Request, then string) {
	target, err := h.api.authorizeURL(r.Context())
	pending := login{State: rand.Text(), Verifier: rand.Text() + rand.Text(), Then: then}
	if err == nil {
		err = h.cookies.set(w, h.loginCookie(), pending, loginTimeout)
	}
	if err != nil {
		fail(w, "start login", err)
		return
	}
	challenge := sha256.Sum256([]byte(pending.Verifier))
	target.RawQuery = url.Values{
		"client_id": {h.ClientID}, "response_type": {"code"}, "redirect_uri": {h.redirectURL(r.Host)}, "scope": {h.Scope}, "state": {pending.State},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}.Encode()
	http.Redirect(w, r, target.String(), http.StatusFound)
}

func (h *handler) loginCookie() string { return h.CookieName + "_login" }

// complete completes a login that the browser has started with start.
func (h *handler) complete(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var pending login
	valid := h.cookies.open(r, h.loginCookie(), &pending)
	clearCookie(w, h.loginCookie())
	switch {
	case !valid || subtle.ConstantTimeCompare([]byte(pending.State), []byte(query.Get("state"))) != 1:
		http.Error(w, "The login has expired. Open the application again.", http.StatusForbidden)
		return
	case query.Get("error") != "":
		http.Error(w, "The login was rejected: "+query.Get("error"), http.StatusForbidden)
		return
	}
	token, err := h.api.token(r.Context(), &h.Settings, query.Get("code"), h.redirectURL(r.Host), pending.Verifier)
	if err != nil {
		fail(w, "complete login", err)
		return
	}
	user, err := h.api.user(r.Context(), token)
	allowed := false
	if err == nil {
		allowed, err = h.api.allows(r.Context(), token, h.Reviews)
	}
	switch {
	case err != nil:
		fail(w, "complete login", err)
		return
	case !allowed:
		slog.Info("rejected user without access", "user", user)
		http.Error(w, "You have no access to this application.", http.StatusForbidden)
		return
	}
	of := session{User: user}
	if h.PassToken {
		of.Token = token
	}
	if err := h.cookies.set(w, h.CookieName, of, h.CookieExpire); err != nil {
		fail(w, "complete login", err)
		return
	}
	slog.Info("user logged in", "user", user)
	http.Redirect(w, r, redirect.Local(pending.Then, "/"), http.StatusFound)
}

// fail logs an error from the OAuth server or the API server, and responds with status 500.
func fail(w http.ResponseWriter, what string, err error) {
	slog.Error(what, "error", err)
	http.Error(w, "The login failed. The log of the proxy contains the reason.", http.StatusInternalServerError)
}

// pass forwards a user's request to the application.
func (h *handler) pass(w http.ResponseWriter, r *http.Request, of session) {
	to := destination{h.upstream(r.URL.Path), of}
	if to.upstream == nil {
		http.Error(w, "No application serves this path.", http.StatusNotFound)
		return
	}
	r = r.Clone(context.WithValue(r.Context(), destinationKey{}, to))
	if sent := r.Header["Cookie"]; len(sent) > 0 {
		r.Header["Cookie"] = withoutCookies(sent, h.CookieName, h.loginCookie())
	}
	h.next.ServeHTTP(w, r)
}

// withoutCookies returns the values of Cookie headers without the named cookies. It does not change
// the other cookies.
func withoutCookies(sent []string, names ...string) []string {
	var kept []string
	for _, line := range sent {
		parts := slices.DeleteFunc(strings.Split(line, ";"), func(part string) bool {
			name, _, _ := strings.Cut(part, "=")
			return slices.Contains(names, strings.TrimSpace(name))
		})
		if text := strings.TrimSpace(strings.Join(parts, ";")); text != "" {
			kept = append(kept, text)
		}
	}
	return kept
}

// destination contains a request's upstream and session.
type destination struct {
	upstream *url.URL
	session
}

// destinationKey is the key of the destination in a request's context.
type destinationKey struct{}

// rewrite directs a request to the application. It keeps the host name of the client's request and
// sets the headers for the user. It runs after the headers that the client's Connection header
// lists have been removed. It also removes client headers whose names differ from the user headers'
// names only in underscores instead of hyphens, because an application might not distinguish these
// names.
func (h *handler) rewrite(r *httputil.ProxyRequest) {
	for name := range r.Out.Header {
		switch http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")) {
		case userHeader, emailHeader, tokenHeader:
			delete(r.Out.Header, name)
		}
	}
	to := r.In.Context().Value(destinationKey{}).(destination)
	if to.User != "" {
		r.Out.Header.Set(userHeader, to.User)
		r.Out.Header.Set(emailHeader, email(to.User))
	}
	if to.Token != "" {
		r.Out.Header.Set(tokenHeader, to.Token)
	}
	r.SetURL(to.upstream)
	r.Out.Host = r.In.Host
	r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
	// A request without TLS comes from a router that has terminated TLS and set this header.
	if scheme := r.In.Header.Get(schemeHeader); r.In.TLS == nil && scheme != "" {
		r.Out.Header.Set(schemeHeader, scheme)
	}
}

// email returns an email address for the user, because some applications identify users by email
// address.
func email(user string) string {
	if strings.Contains(user, "@") {
		return user
	}
	return user + "@cluster.local"
}
