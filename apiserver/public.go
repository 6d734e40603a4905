package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"

	"github.com/slipway-platform/slipway/internal/clientaddr"
)

// Public handlers find out by themselves who asks, by means that upstream's chain does not know: forms, cookies,
// passwords, the certificate of a proxy. So they have a chain of their own, which is upstream's with everyone as
// system:anonymous: the same priority and fairness, audit, timeouts and headers. The chain sees only the path of a
// request, so that no code, password or token comes into an audit log.

// maxPublicBody limits the body of a request to a public handler, in bytes.
const maxPublicBody = 64 << 10

// publicBodyTimeout is how long a client may take to send it.
const publicBodyTimeout = 30 * time.Second

// PublicChain puts public handlers into the filters of a configuration.
func PublicChain(public http.Handler, config *genericserver.Config) http.Handler {
	own := *config
	own.Authentication.Authenticator = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}}, true, nil
	})
	own.Authentication.APIAudiences = nil
	own.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	own.RequestInfoResolver = byAddress{config.RequestInfoResolver}
	own.CorsAllowedOriginList = nil // pages of other sites have no business on a login page
	return conceal(genericserver.DefaultBuildHandlerChain(reveal(public), &own))
}

// concealed is the key of the whole request in the context of the one that the chain sees.
type concealed struct{}

// conceal reads a request and hides everything from next that could be a secret or could make next trust the caller.
func conceal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Who sends slowly must not hold one of the places that priority and fairness gives.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(publicBodyTimeout)) // tests' writers cannot
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPublicBody))
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			http.Error(w, "The request is too large.", http.StatusRequestEntityTooLarge)
			return
		case err != nil:
			http.Error(w, "The request cannot be read.", http.StatusBadRequest)
			return
		}
		whole := r.WithContext(r.Context())
		whole.Body = io.NopCloser(bytes.NewReader(body))
		shown := r.WithContext(context.WithValue(r.Context(), concealed{}, whole))
		shown.Body, shown.Header = http.NoBody, http.Header{}
		for _, name := range []string{"Accept", "User-Agent", "X-Forwarded-For", "X-Real-Ip"} {
			if values := r.Header.Values(name); len(values) > 0 {
				shown.Header[name] = values
			}
		}
		shown.URL = &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath}
		shown.RequestURI = shown.URL.RequestURI()
		next.ServeHTTP(w, shown)
	})
}

// reveal gives next the whole request.
func reveal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole, ok := r.Context().Value(concealed{}).(*http.Request)
		if !ok {
			http.Error(w, "The request cannot be read.", http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(w, whole.WithContext(r.Context()))
	})
}

// byAddress puts the client's address in the place of a namespace, by which the FlowSchema `unauthenticated` tells flows
// apart: requests from one address wait for each other and not for those from elsewhere.
type byAddress struct{ request.RequestInfoResolver }

// NewRequestInfo reads what is asked for.
func (b byAddress) NewRequestInfo(r *http.Request) (*request.RequestInfo, error) {
	info, err := b.RequestInfoResolver.NewRequestInfo(r)
	if err == nil {
		info.IsResourceRequest, info.Namespace = false, clientaddr.Network(r.RemoteAddr)
	}
	return info, err
}

// wholeURL is the key of the URL with its secrets in the context of a request whose path conceals them.
type wholeURL struct{}

// concealPaths hides the secrets in paths from next.
func (s *Server) concealPaths(next http.Handler) http.Handler {
	if len(s.hooks.Conceal) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		for _, conceal := range s.hooks.Conceal {
			path = conceal(path)
		}
		if path != r.URL.Path {
			shown := *r.URL
			shown.Path, shown.RawPath = path, ""
			r = r.WithContext(context.WithValue(r.Context(), wholeURL{}, r.URL))
			r.URL, r.RequestURI = &shown, shown.RequestURI()
		}
		next.ServeHTTP(w, r)
	})
}

// withWholeURL is a request as the client sent it.
func withWholeURL(r *http.Request) *http.Request {
	whole, ok := r.Context().Value(wholeURL{}).(*url.URL)
	if !ok {
		return r
	}
	r = r.WithContext(r.Context())
	r.URL = whole
	return r
}
