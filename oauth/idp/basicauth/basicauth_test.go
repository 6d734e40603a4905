package basicauth

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/conformance"
)

// server starts a server that responds as the OpenShift 3 documentation specifies. respond handles
// requests with valid credentials.
func server(t *testing.T, respond func(w http.ResponseWriter)) *Provider {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "alice" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		respond(w)
	}))
	t.Cleanup(s.Close)
	return &Provider{URL: s.URL, Client: s.Client()}
}

func TestConformance(t *testing.T) {
	provider := server(t, func(w http.ResponseWriter) {
		fmt.Fprint(w, `{"sub":"4711","name":"Alice A.","email":"alice@example.com","preferred_username":"alice","other":[1]}`)
	})
	server := httptest.NewTLSServer(nil)
	server.Close()
	conformance.Password{
		Provider: provider, User: "alice", Secret: "secret",
		Want:        idp.Identity{UserName: "4711", PreferredUserName: "alice", Name: "Alice A.", Email: "alice@example.com"},
		Unreachable: &Provider{URL: server.URL, Client: server.Client()},
	}.Test(t)
}

func TestResponsesWithoutUserAreErrors(t *testing.T) {
	for name, respond := range map[string]func(w http.ResponseWriter){
		"no sub":     func(w http.ResponseWriter) { fmt.Fprint(w, `{"name":"Alice"}`) },
		"error":      func(w http.ResponseWriter) { fmt.Fprint(w, `{"sub":"x","error":"no"}`) },
		"not JSON":   func(w http.ResponseWriter) { fmt.Fprint(w, `<html>`) },
		"status 500": func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"redirect":   func(w http.ResponseWriter) { w.Header().Set("Location", "/other"); w.WriteHeader(http.StatusFound) },
		"too long":   func(w http.ResponseWriter) { fmt.Fprintf(w, `{"sub":"%s"}`, strings.Repeat("a", 2<<20)) },
	} {
		got, err := server(t, respond).AuthenticatePassword(t.Context(), "alice", "secret")
		if got != nil || err == nil || errors.Is(err, idp.ErrRefused) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
