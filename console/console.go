// Package console serves the web console: its files, the browser's login, and the API on the
// console's own origin.
//
// The console is an OAuth client that uses the authorization code flow with PKCE. The access token
// is in an encrypted cookie, which scripts cannot read. No process stores the token, so every
// master can serve every session. A request below /console/proxy receives the token from the cookie
// and continues in the API server's own handler chain. The chain authenticates, authorizes, limits
// and audits it like a request with a bearer token.
//
// The part that runs in the browser is in the web folder. See
// docs/decisions/console-is-an-oauth-client.md.
package console

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"

	genericserver "k8s.io/apiserver/pkg/server"

	"github.com/slipway-platform/slipway/apiserver"
)

// Paths of the console. For every other path below Path, the server returns the console's page. The
// page's script interprets the path.
const (
	Path         = "/console/"
	proxyPath    = Path + "proxy"
	loginPath    = Path + "login"
	callbackPath = Path + "callback"
	sessionPath  = Path + "session"
	logoutPath   = Path + "logout"
	assetsPath   = Path + "assets/"
	errorPath    = Path + "error"

	configPath    = Path + "config.json"
	downloadsPath = Path + "downloads/"
)

// Config configures the console.
type Config struct {
	// PublicURL is the API server's address for browsers, such as https://master:8443.
	PublicURL string
	// ClientID is the ID of the console's OAuth client.
	ClientID string
	// AuthorizePath and TokenPath are the paths of the OAuth server's endpoints at PublicURL.
	AuthorizePath, TokenPath string
	// Downloads is the directory that contains the command line clients that the console offers for
	// download. It is optional.
	Downloads string
	// Sessions seals the cookies and ends sessions.
	Sessions Sessions
	// Report is called with request errors. The errors contain no secrets.
	Report func(error)
}

// Sessions seals cookie values so that only this cluster's masters can read them.
type Sessions interface {
	Seal(name string, value any) (string, error)
	Open(name, text string, into any) error
	// Generation returns a value that changes when all sessions of an access token's user are
	// ended. If the token or its user no longer exists, the error is a not-found error.
	Generation(ctx context.Context, token string) (string, error)
	// LogOut deletes an access token. It ends all sessions of the token's user and of the user
	// whose session cookie is in the request.
	LogOut(w http.ResponseWriter, r *http.Request, token string) error
}

// Feature returns the feature that adds the console to the API server.
func Feature(config Config) apiserver.Feature {
	return apiserver.Feature{Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
		client, err := loopback(deps.Loopback)
		if err != nil {
			return apiserver.Hooks{}, fmt.Errorf("set up web console: %w", err)
		}
		s, err := newServer(config, client)
		if err != nil {
			return apiserver.Hooks{}, err
		}
		hooks := apiserver.Hooks{Filters: []func(http.Handler) http.Handler{s.filter}}
		hooks.PostStart = map[string]genericserver.PostStartHookFunc{"slipway/console-settings": func(hook genericserver.PostStartHookContext) error {
			return s.follow(hook, deps.Kube)
		}}
		for path, handler := range s.handlers() {
			hooks.Handlers = append(hooks.Handlers, apiserver.Handler{Path: path, Public: true, Handler: handler})
		}
		return hooks, nil
	}}
}

// server serves the console with one configuration.
type server struct {
	Config
	exchange *tokenClient
	content  fs.FS
	files    map[string]file
	// current contains the last valid settings.
	current atomic.Pointer[settings]
}

func newServer(config Config, exchange *tokenClient) (*server, error) {
	content, err := fs.Sub(embedded, "dist")
	if err != nil {
		return nil, fmt.Errorf("read web console files: %w", err)
	}
	files, err := readFiles(content)
	s := &server{Config: config, exchange: exchange, content: content, files: files}
	s.current.Store(&settings{})
	return s, err
}

// handlers returns the handlers for public paths. The handlers change state, so auditing and the
// limits for unauthenticated clients apply to their requests.
func (s *server) handlers() map[string]http.Handler {
	return map[string]http.Handler{
		loginPath:    s.harden(s.serveLogin),
		callbackPath: s.harden(s.serveCallback),
		logoutPath:   s.harden(s.serveLogout),
	}
}

// isPage reports whether a browser requests a page. It checks for HTML, which API clients do not
// request.
func isPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// filter serves the console's files, and passes the console's API requests to next before
// authentication. It redirects browsers from the root path to the console. Files are not served by
// public handlers, because the API server closes an unauthenticated client's HTTP/2 connection
// after each response from such a handler. A page loads dozens of files. Other requests pass
// through unchanged, with two exceptions. Session cookies are removed from API requests. filter
// adds sandboxPolicy to API responses if a browser with a session or a client certificate could
// show a pod's page on the console's origin.
func (s *server) filter(next http.Handler) http.Handler {
	handlers := s.handlers()
	session, files := s.harden(s.serveSession), s.harden(s.serveFile)
	config, downloads := s.harden(s.serveConfig), s.harden(s.serveDownload)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		below := func(root string) bool { return strings.HasPrefix(r.URL.Path+"/", root+"/") }
		switch {
		case below(proxyPath):
			s.proxy(w, r, next)
		case r.URL.Path == sessionPath:
			session.ServeHTTP(w, r)
		case r.URL.Path == configPath:
			config.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, downloadsPath):
			downloads.ServeHTTP(w, r)
		case r.URL.Path == "/" && isPage(r):
			w.Header().Set("Vary", "Accept")
			http.Redirect(w, r, Path, http.StatusFound)
		case handlers[r.URL.Path] == nil && below(strings.TrimSuffix(Path, "/")):
			files.ServeHTTP(w, r)
		default:
			if isAPI(r.URL.Path) {
				if _, err := r.Cookie(sessionCookie); err == nil || hasCertificate(r) {
					w.Header().Add("Content-Security-Policy", sandboxPolicy)
				}
				r = withoutSessions(r)
			}
			next.ServeHTTP(w, r)
		}
	})
}
