package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"

	"github.com/slipway-platform/slipway/internal/clientaddr"
)

// Public handlers authenticate users with methods that upstream's chain does not support: forms,
// cookies, passwords, or a proxy's certificate. Therefore, they have a separate chain: upstream's
// chain in which every user is system:anonymous, with the same priority and fairness, audit,
// timeouts and headers. The chain sees only a request's path, so no code, password or token reaches
// the audit log.

// maxPublicBody is the maximum size of a public request body, in bytes.
const maxPublicBody = 64 << 10

// publicBodyTimeout is the maximum time that a client can take to send the body.
const publicBodyTimeout = 30 * time.Second

// PublicChain wraps public handlers in a configuration's handler chain. In this chain, every user
// is system:anonymous and every request is allowed.
func PublicChain(public http.Handler, config *genericserver.Config) http.Handler {
	own := *config
	own.Authentication.Authenticator = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}}, true, nil
	})
	own.Authentication.APIAudiences = nil
	own.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	own.RequestInfoResolver = byAddress{config.RequestInfoResolver}
	own.CorsAllowedOriginList = nil // login pages accept no cross-origin requests
	return conceal(genericserver.DefaultBuildHandlerChain(reveal(public), &own))
}

// concealed is the context key for the complete request.
type concealed struct{}

// conceal calls next with a copy of the request that contains nothing that could be a secret or
// could cause next to trust the client.
func conceal(next http.Handler) http.Handler {
	arriving := newArrivals()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A client that sends slowly must not occupy a priority and fairness seat. Ignore errors,
		// because the response writers in tests do not support deadlines.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(publicBodyTimeout))
		body, err := receivePublic(arriving, w, r)
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		var tooLarge *http.MaxBytesError
		switch {
		case apierrors.IsTooManyRequests(err):
			serveError(w, err)
			return
		case errors.As(err, &tooLarge):
			http.Error(w, "The request is too large.", http.StatusRequestEntityTooLarge)
			return
		case err != nil:
			http.Error(w, "The request cannot be read.", http.StatusBadRequest)
			return
		}
		request := r.WithContext(r.Context())
		request.Body = io.NopCloser(bytes.NewReader(body))
		redacted := r.WithContext(context.WithValue(r.Context(), concealed{}, request))
		redacted.Body, redacted.Header = http.NoBody, http.Header{}
		for _, name := range []string{"Accept", "User-Agent", "X-Forwarded-For", "X-Real-Ip"} {
			if values := r.Header.Values(name); len(values) > 0 {
				redacted.Header[name] = values
			}
		}
		redacted.URL = &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath}
		redacted.RequestURI = redacted.URL.RequestURI()
		next.ServeHTTP(w, redacted)
	})
}

// receivePublic receives a request's body.
func receivePublic(arriving *arrivals, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var body bytes.Buffer
	var err error
	limited := http.MaxBytesReader(w, r.Body, maxPublicBody)
	busy := arriving.receive(r.Context(), senderAt(r.RemoteAddr), func(size int) bool {
		_, err = io.CopyN(&body, limited, int64(size-body.Len()))
		return err != nil
	})
	if busy != nil {
		return nil, busy
	}
	if err == nil { // the body has at least the maximum size
		_, err = io.Copy(&body, limited)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return body.Bytes(), err
}

// senderAt returns the sender name for a client that is not logged in.
func senderAt(remoteAddr string) string { return "the address " + clientaddr.Network(remoteAddr) }

// reveal calls next with the complete request.
func reveal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, ok := r.Context().Value(concealed{}).(*http.Request)
		if !ok {
			http.Error(w, "The request cannot be read.", http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(w, request.WithContext(r.Context()))
	})
}

// byAddress sets the namespace of a request to the client's IPv4 address or IPv6 /64 network. The
// FlowSchema `unauthenticated` distinguishes flows by namespace, so a client's requests queue only
// behind requests from the same address.
type byAddress struct{ request.RequestInfoResolver }

// NewRequestInfo returns the request info with the address as its namespace.
func (b byAddress) NewRequestInfo(r *http.Request) (*request.RequestInfo, error) {
	info, err := b.RequestInfoResolver.NewRequestInfo(r)
	if err == nil {
		info.IsResourceRequest, info.Namespace = false, clientaddr.Network(r.RemoteAddr)
	}
	return info, err
}

// wholeURL is the context key for a request's complete URL if its path is concealed.
type wholeURL struct{}

// concealPaths calls next with requests whose paths do not contain secrets.
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
			target := *r.URL
			target.Path, target.RawPath = path, ""
			r = r.WithContext(context.WithValue(r.Context(), wholeURL{}, r.URL))
			r.URL, r.RequestURI = &target, target.RequestURI()
		}
		next.ServeHTTP(w, r)
	})
}

// withWholeURL returns the request as the client sent it.
func withWholeURL(r *http.Request) *http.Request {
	target, ok := r.Context().Value(wholeURL{}).(*url.URL)
	if !ok {
		return r
	}
	r = r.WithContext(r.Context())
	r.URL = target
	return r
}
