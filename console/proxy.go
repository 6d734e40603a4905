package console

import (
	"encoding/json"
	"net/http"
	"net/textproto"
	"net/url"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// proxy passes a request below proxyPath to next as an API request with the session's token. It
// rejects requests that were not sent by one of the console's pages.
func (s *server) proxy(w http.ResponseWriter, r *http.Request, next http.Handler) {
	of, ok := s.session(r)
	target := strings.TrimPrefix(r.URL.Path, proxyPath)
	upgrade := isWebSocket(r)
	switch {
	case !ok:
		refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "the session of the console has ended; log in again")
	case upgrade && !sameOrigin(r), !upgrade && (!of.confirms(r) || r.Header.Get("Origin") != "" && !sameOrigin(r)):
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "the request does not come from a page of the console")
	case !isAPI(target) || path.Clean(target) != strings.TrimSuffix(target, "/") || upgrade && isPodProxy(target):
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the console does not serve this path of the API")
	case upgrade:
		next.ServeHTTP(w, authorized(r, target, of.Token))
	default:
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(&cleaned{ResponseWriter: w}), authorized(r, target, of.Token))
	}
}

// hasCertificate reports whether a client has a certificate. It excludes clients behind `kubectl
// proxy`, which shows pages on its own origin.
func hasCertificate(r *http.Request) bool {
	return r.TLS != nil && len(r.TLS.PeerCertificates) > 0 && r.Header.Get("X-Forwarded-For") == ""
}

// hostPrefix is the prefix of the cookie names of the console and the login pages.
const hostPrefix = "__Host-"

// withoutSessions returns an API request without session cookies. The API itself does not use these
// cookies, but would pass them on to a pod if the browser has a client certificate.
func withoutSessions(r *http.Request) *http.Request {
	lines := r.Header["Cookie"]
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, hostPrefix) }) {
		return r
	}
	cookies := slices.DeleteFunc(strings.Split(strings.Join(lines, ";"), ";"), func(pair string) bool {
		return strings.HasPrefix(strings.TrimSpace(pair), hostPrefix)
	})
	request := r.WithContext(r.Context())
	request.Header = r.Header.Clone()
	request.Header.Del("Cookie")
	if len(cookies) > 0 {
		request.Header.Set("Cookie", strings.TrimSpace(strings.Join(cookies, ";")))
	}
	return request
}

// isWebSocket reports whether a request opens a WebSocket. Scripts cannot set csrfHeader on a
// WebSocket request, so the Origin header, which browsers always send, is checked instead.
func isWebSocket(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// isAPI reports whether a path is a path of the API, its OpenAPI schema, its version or the
// platform's views.
func isAPI(path string) bool {
	return slices.ContainsFunc([]string{"/api", "/apis", "/oapi", "/openapi", "/version", "/slipway"}, func(root string) bool {
		return path == root || strings.HasPrefix(path, root+"/")
	})
}

// isPodProxy reports whether the response for a path comes from a pod, service or node.
func isPodProxy(path string) bool { return slices.Contains(strings.Split(path, "/"), "proxy") }

// sameOrigin reports whether a page on this host sent a request. Browsers store cookies by host
// name, so a browser has no session under the host's other names.
func sameOrigin(r *http.Request) bool {
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Scheme == "https" && origin.Host == r.Host
}

// forwarded lists the request headers that are passed to the API. It does not contain headers that
// authenticate or impersonate a user.
var forwarded = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "If-Match", "If-None-Match", "Range",
	"User-Agent", "X-Forwarded-For", "X-Real-Ip",
}

// forwardedWebSocket lists the additional headers of a WebSocket request that are passed to the
// API. They include Origin, because the API's WebSockets require an origin.
var forwardedWebSocket = []string{
	"Origin", "Sec-Websocket-Extensions", "Sec-Websocket-Key", "Sec-Websocket-Protocol", "Sec-Websocket-Version", "Upgrade",
}

// acceptParameter is the query parameter that replaces the Accept header of a WebSocket request,
// because scripts cannot set headers on such a request. A watch uses it to request Tables.
const acceptParameter = "accept"

// authorized returns a request for an API path with an access token. It removes the browser's
// client certificate, so that a request with an invalid token does not have the certificate's
// permissions.
func authorized(r *http.Request, target, token string) *http.Request {
	request := r.WithContext(r.Context())
	request.Header = http.Header{}
	names := forwarded
	if isWebSocket(r) {
		names = slices.Concat(forwarded, forwardedWebSocket)
	}
	for _, name := range names {
		if values := r.Header[textproto.CanonicalMIMEHeaderKey(name)]; len(values) > 0 {
			request.Header[textproto.CanonicalMIMEHeaderKey(name)] = values
		}
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.URL = &url.URL{Path: target, RawQuery: r.URL.RawQuery}
	if isWebSocket(r) {
		query := request.URL.Query()
		if query.Has(acceptParameter) {
			request.Header.Set("Accept", query.Get(acceptParameter))
			query.Del(acceptParameter)
			request.URL.RawQuery = query.Encode()
		}
	}
	request.RequestURI = request.URL.RequestURI()
	if r.TLS != nil {
		connection := *r.TLS
		connection.PeerCertificates, connection.VerifiedChains = nil, nil
		request.TLS = &connection
	}
	return request
}

// passed lists the response headers that are passed to the browser. The API passes on all of a
// pod's headers, but some of them affect the browser, such as Location, Set-Cookie, Clear-Site-Data
// and Alt-Svc. Therefore, the console removes all headers that are not in the list.
var passed = []string{
	"Accept-Ranges", "Audit-Id", "Cache-Control", "Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "Date", "Etag",
	"Last-Modified", "Retry-After", "Transfer-Encoding", "Vary", "Warning", "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid",
}

// cleaned is a response writer that removes all headers except the headers in passed, and sets
// sandboxPolicy.
type cleaned struct {
	http.ResponseWriter
	done bool
}

// Unwrap returns the underlying response writer.
func (c *cleaned) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader writes the remaining headers. It discards informational responses (RFC 9110, section
// 15.2), because more headers follow them.
func (c *cleaned) WriteHeader(status int) {
	if status < http.StatusOK {
		return
	}
	c.clean()
	c.ResponseWriter.WriteHeader(status)
}

// Write writes the body, after the remaining headers.
func (c *cleaned) Write(body []byte) (int, error) {
	c.clean()
	return c.ResponseWriter.Write(body)
}

func (c *cleaned) clean() {
	if c.done {
		return
	}
	c.done = true
	header := c.Header()
	for name := range header {
		if !slices.Contains(passed, name) {
			delete(header, name)
		}
	}
	header.Set("Content-Security-Policy", sandboxPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// refuse sends an error as a Status object, as the API does.
func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	})
}
