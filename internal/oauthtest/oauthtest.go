// Package oauthtest provides an external OAuth server for tests of identity providers.
package oauthtest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Credentials of Server's registered client.
const (
	ClientID     = "slipway"
	ClientSecret = "the-client-secret"
)

// Server is an OAuth server that logs every user in immediately. Its codes and tokens are real:
// each code is valid once, and only for the registered client and its redirect URI.
type Server struct {
	// Authorize and Token are the paths of the authorization and token endpoints.
	Authorize, Token string
	// Claims are added to the usual claims in each login's ID token. If Claims is nil, the ID token
	// is omitted.
	Claims map[string]any
	// API maps paths to the responses for requests with a valid token.
	API map[string]any
	// Undescribed makes the server omit the discovery document and the keys. Forged makes the
	// server sign with a key that it does not publish.
	Undescribed, Forged bool

	mutex     sync.Mutex
	codes     map[string]login
	codeCount int
	key       *rsa.PrivateKey
}

// login records the parameters of an authorization request.
type login struct{ address, nonce string }

// KeysPath is the path of the published keys.
const KeysPath = "/keys"

// accessToken is the token that the server issues for every code.
const accessToken = "the-access-token"

// Start runs the server with TLS until the test ends.
func (s *Server) Start(t testing.TB) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	return server
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch response, ok := s.API[r.URL.Path]; {
	case r.URL.Path == s.Authorize:
		s.authorize(w, r)
	case r.URL.Path == s.Token && r.Method == http.MethodPost:
		s.token(w, r)
	case r.URL.Path == "/.well-known/openid-configuration" && !s.Undescribed:
		s.describe(w, r)
	case r.URL.Path == KeysPath && !s.Undescribed:
		s.publish(w)
	case ok && r.Header.Get("Authorization") == "Bearer "+accessToken:
		_ = json.NewEncoder(w).Encode(response)
	case ok:
		w.WriteHeader(http.StatusUnauthorized)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("client_id") != ClientID || query.Get("response_type") != "code" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mutex.Lock()
	if s.codes == nil {
		s.codes = map[string]login{}
	}
	s.codeCount++
	code := fmt.Sprintf("code-%d", s.codeCount)
	s.codes[code] = login{query.Get("redirect_uri"), query.Get("nonce")}
	s.mutex.Unlock()
	back := query.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {query.Get("state")}}.Encode()
	http.Redirect(w, r, back, http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	code := r.PostFormValue("code")
	s.mutex.Lock()
	request, ok := s.codes[code]
	delete(s.codes, code)
	s.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if id != ClientID || secret != ClientSecret || !ok || request.address != r.PostFormValue("redirect_uri") {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"%s"}`, ClientSecret)
		return
	}
	resp := map[string]any{"access_token": accessToken, "token_type": "Bearer"}
	if s.Claims != nil {
		token, err := s.idToken(r.Host, request.nonce)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		resp["id_token"] = token
	}
	_ = json.NewEncoder(w).Encode(resp)
}

// idToken signs an ID token with the published key, or with another key if Forged is set.
func (s *Server) idToken(host, nonce string) (string, error) {
	all := map[string]any{"iss": "https://" + host, "aud": ClientID, "exp": time.Now().Add(time.Hour).Unix()}
	if nonce != "" {
		all["nonce"] = nonce
	}
	for name, value := range s.Claims {
		all[name] = value
	}
	payload, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	key, err := s.signingKey()
	if s.Forged && err == nil {
		key, err = rsa.GenerateKey(rand.Reader, keyBits)
	}
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, nil)
	if err != nil {
		return "", err
	}
	signature, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signature.CompactSerialize()
}

const keyBits = 2048

// signingKey returns the server's own key. The first call creates the key.
func (s *Server) signingKey() (key *rsa.PrivateKey, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.key == nil {
		s.key, err = rsa.GenerateKey(rand.Reader, keyBits)
	}
	return s.key, err
}

// describe serves the OpenID Connect Discovery document.
func (s *Server) describe(w http.ResponseWriter, r *http.Request) {
	issuer := "https://" + r.Host
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client might have disconnected
		"issuer": issuer, "authorization_endpoint": issuer + s.Authorize,
		"token_endpoint": issuer + s.Token, "jwks_uri": issuer + KeysPath,
		"id_token_signing_alg_values_supported": []string{"RS256", "HS256"},
	})
}

// publish serves the public key.
func (s *Server) publish(w http.ResponseWriter) {
	key, err := s.signingKey()
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), Algorithm: "RS256", Use: "sig"}}}
	_ = json.NewEncoder(w).Encode(set) // the client might have disconnected
}
