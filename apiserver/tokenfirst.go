package apiserver

import (
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
)

// tokenFirst authenticates a request with a bearer token only by the token, as OpenShift 3 does.
// The token takes precedence over a client certificate. A request with an invalid token is rejected
// even if the certificate is valid. Upstream prefers the certificate, and then ignores the token.
type tokenFirst struct {
	authenticator.Request
}

// remoteUserHeader is the header that contains the name of the user in requests from the front
// proxy. The proxy authenticates with its own certificate.
const remoteUserHeader = "X-Remote-User"

// AuthenticateRequest implements authenticator.Request.
func (t tokenFirst) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || !hasToken(r.Header) || r.Header.Get(remoteUserHeader) != "" {
		return t.Request.AuthenticateRequest(r)
	}
	state := *r.TLS
	state.PeerCertificates, state.VerifiedChains = nil, nil
	// The copy shares its headers with the request, so authenticators remove the token from both
	// requests.
	plain := r.WithContext(r.Context())
	plain.TLS = &state
	return t.Request.AuthenticateRequest(plain)
}

// webSocketToken is the prefix of the subprotocol that WebSocket clients use to send a token.
const webSocketToken = "base64url.bearer.authorization.k8s.io."

func hasToken(header http.Header) bool {
	kind, token, _ := strings.Cut(strings.TrimSpace(header.Get("Authorization")), " ")
	return strings.EqualFold(kind, "bearer") && strings.TrimSpace(token) != "" ||
		strings.Contains(strings.Join(header.Values("Sec-WebSocket-Protocol"), ","), webSocketToken)
}
