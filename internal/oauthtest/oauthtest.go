// Package oauthtest is an OAuth server of somebody else for tests: one that our identity providers send persons to.
package oauthtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// The registration that Server knows.
const (
	ClientID     = "slipway"
	ClientSecret = "the-client-secret"
)

// Server is an OAuth server that logs everybody in at once, with real codes and tokens: each code counts once, for the registered client
// and the address that it was asked for with.
type Server struct {
	// Authorize and Token are the paths of its endpoints.
	Authorize, Token string
	// Claims go into the ID token of each login, over the usual ones; nil sends none.
	Claims map[string]any
	// API answers requests with a right token, by path.
	API map[string]any

	mutex sync.Mutex
	codes map[string]string // to the address they were asked for with
	made  int
}

// accessToken is what each code is exchanged for.
const accessToken = "the-access-token"

// Start runs the server with TLS until the test ends.
func (s *Server) Start(t testing.TB) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	return server
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch answer, known := s.API[r.URL.Path]; {
	case r.URL.Path == s.Authorize:
		s.authorize(w, r)
	case r.URL.Path == s.Token && r.Method == http.MethodPost:
		s.token(w, r)
	case known && r.Header.Get("Authorization") == "Bearer "+accessToken:
		_ = json.NewEncoder(w).Encode(answer)
	case known:
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
		s.codes = map[string]string{}
	}
	s.made++
	code := fmt.Sprintf("code-%d", s.made)
	s.codes[code] = query.Get("redirect_uri")
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
	address, known := s.codes[code]
	delete(s.codes, code)
	s.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if id != ClientID || secret != ClientSecret || !known || address != r.PostFormValue("redirect_uri") {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"%s"}`, ClientSecret)
		return
	}
	answer := map[string]any{"access_token": accessToken, "token_type": "Bearer"}
	if s.Claims != nil {
		answer["id_token"] = idToken(s.Claims)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// idToken is an ID token without a signature of worth.
func idToken(claims map[string]any) string {
	all := map[string]any{"iss": "https://issuer", "aud": ClientID, "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range claims {
		all[name] = value
	}
	payload, _ := json.Marshal(all)
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode(payload) + "." + encode([]byte("signature"))
}
