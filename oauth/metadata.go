package oauth

import (
	"encoding/json"
	"net/http"

	"github.com/slipway-platform/slipway/oauth/authorize"
	"github.com/slipway-platform/slipway/oauth/scope"
	"github.com/slipway-platform/slipway/oauth/token"
)

// metadata is the document that clients use to discover the server's endpoints (RFC 8414; 3.9
// Architecture, 4.1.4.5).
type metadata struct {
	Issuer                        string   `json:"issuer"`
	AuthorizationEndpoint         string   `json:"authorization_endpoint"`
	TokenEndpoint                 string   `json:"token_endpoint"`
	ScopesSupported               []string `json:"scopes_supported"`
	ResponseTypesSupported        []string `json:"response_types_supported"`
	GrantTypesSupported           []string `json:"grant_types_supported"`
	CodeChallengeMethodsSupported []string `json:"code_challenge_methods_supported"`
}

// describe returns the metadata document for a server with this URL, as JSON.
func describe(publicURL string) ([]byte, error) {
	return json.MarshalIndent(metadata{
		Issuer:                        publicURL,
		AuthorizationEndpoint:         publicURL + authorize.Path,
		TokenEndpoint:                 publicURL + TokenPath,
		ScopesSupported:               scope.Supported(),
		ResponseTypesSupported:        []string{"code", "token"},
		GrantTypesSupported:           []string{"authorization_code", "implicit"},
		CodeChallengeMethodsSupported: token.ChallengeMethods(),
	}, "", "  ")
}

// serveMetadata returns a handler that serves the metadata document.
func serveMetadata(document []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document)
	})
}
