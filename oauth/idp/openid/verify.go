package openid

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/slipway-platform/slipway/oauth/idp/remote"
)

// Keys defines the issuer of a server's ID tokens, and the keys that verify them.
type Keys struct {
	// Issuer is the server's issuer identifier. If it is empty, it is derived from an ID token. In
	// this case, the token's issuer must be on the host of the authorize endpoint or of the token
	// endpoint. The issuer's discovery document must contain the same token endpoint.
	Issuer string
	// URL is the URL of the server's keys. If it is empty, the discovery document contains the URL.
	URL string
}

// verifier verifies the ID tokens of one OpenID provider. After it has determined the issuer, it
// caches the issuer's token verifier.
type verifier struct {
	settings Settings

	mu     sync.Mutex
	issuer *oidc.IDTokenVerifier // nil until the issuer is set
}

// description is an issuer's discovery document.
//
// Source: OpenID Connect Discovery 1.0, section 3.
type description struct {
	Issuer     string   `json:"issuer"`
	TokenURL   string   `json:"token_endpoint"`
	KeysURL    string   `json:"jwks_uri"`
	Algorithms []string `json:"id_token_signing_alg_values_supported"`
}

// errUndescribed means that an issuer has no valid discovery document.
var errUndescribed = errors.New("the issuer of the ID token has no discovery document")

// verify checks an ID token's issuer, signature, audience and time, and returns its claims. If the
// issuer is neither configured nor derivable, verify only decodes the token. In this case, the TLS
// connection to the token endpoint authenticates the token (OpenID Connect Core 1.0, section
// 3.1.3.7, point 6).
func (v *verifier) verify(ctx context.Context, token string) (map[string]any, error) {
	claims, err := decode(token)
	if err != nil {
		return nil, err
	}
	issuer, err := v.of(ctx, claims)
	if errors.Is(err, errUndescribed) && v.settings.Keys.Issuer == "" {
		return claims, nil
	}
	if err != nil {
		return nil, err
	}
	if issuer == nil {
		return claims, nil
	}
	if _, err := issuer.Verify(oidc.ClientContext(ctx, v.settings.Client), token); err != nil {
		return nil, errors.New("the ID token of the identity provider cannot be verified: its issuer, signature, audience or time is wrong")
	}
	return claims, nil
}

// of returns the verifier for the server's issuer. If no issuer is configured and the claims do not
// contain a plausible issuer, of returns nil without an error. If the issuer has no valid discovery
// document, the error is errUndescribed.
func (v *verifier) of(ctx context.Context, claims map[string]any) (*oidc.IDTokenVerifier, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.issuer != nil {
		return v.issuer, nil
	}
	issuer := v.settings.Keys.Issuer
	if issuer == "" {
		if issuer, _ = claims["iss"].(string); !v.plausible(issuer) {
			return nil, nil
		}
	}
	keys, algorithms := v.settings.Keys.URL, []string(nil)
	if keys == "" {
		provider, err := v.describe(ctx, issuer)
		if err != nil {
			return nil, err
		}
		keys, algorithms = provider.KeysURL, provider.Algorithms
	}
	// The key set needs its own context, because it outlives this request: when a token has an
	// unknown key, the key set fetches the keys again.
	set := oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), v.settings.Client), keys)
	v.issuer = oidc.NewVerifier(issuer, set, &oidc.Config{
		ClientID: v.settings.ClientID, SupportedSigningAlgs: asymmetric(algorithms), Now: func() time.Time { return time.Now().Add(-skew) },
	})
	return v.issuer, nil
}

// plausible reports whether an issuer uses TLS and is on the host of a configured endpoint.
func (v *verifier) plausible(issuer string) bool {
	at, err := url.Parse(issuer)
	if err != nil || at.Scheme != "https" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return false
	}
	for _, expected := range []string{v.settings.AuthorizeURL, v.settings.TokenURL} {
		if configured, err := url.Parse(expected); err == nil && configured.Host == at.Host {
			return true
		}
	}
	return false
}

// describe requests an issuer's discovery document. It returns errUndescribed if the document is
// missing or invalid, or if the issuer is derived and the document contains a different token
// endpoint.
func (v *verifier) describe(ctx context.Context, issuer string) (*description, error) {
	request, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", nil)
	if err != nil {
		return nil, fmt.Errorf("read issuer discovery document: %w", err)
	}
	d := &description{}
	response, err := remote.JSON(ctx, v.settings.Client, request, d)
	if err != nil {
		return nil, err
	}
	derived := v.settings.Keys.Issuer == ""
	keys, err := url.Parse(d.KeysURL)
	switch {
	case response.StatusCode >= http.StatusInternalServerError:
		return nil, fmt.Errorf("the issuer of ID tokens responds with status %d", response.StatusCode)
	case response.StatusCode != http.StatusOK, d.Issuer != issuer, err != nil, keys.Scheme != "https":
		return nil, errUndescribed
	case derived && d.TokenURL != v.settings.TokenURL:
		return nil, errUndescribed // the document belongs to another issuer
	}
	return d, nil
}

// asymmetric returns the names of algorithms that use public keys. If names contains none,
// asymmetric returns RS256, which every server must support.
func asymmetric(names []string) []string {
	algorithms := []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}
	remaining := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(algorithms, name) })
	if len(remaining) == 0 {
		return []string{oidc.RS256}
	}
	return remaining
}

// decode decodes the claims in an ID token. It does not verify the signature.
func decode(token string) (map[string]any, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("the identity provider sent no ID token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return nil, errors.New("the ID token of the identity provider cannot be decoded")
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil || claims == nil {
		return nil, errors.New("the ID token of the identity provider cannot be decoded")
	}
	return claims, nil
}
