package keystone

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/conformance"
)

// keystone starts a server that responds like version 3 of the Keystone API.
func keystone(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Auth struct {
				Identity struct {
					Password struct {
						User struct {
							Name, Password string
							Domain         struct{ Name string }
						}
					}
				}
			}
		}
		if r.URL.Path != "/v3/auth/tokens" || json.NewDecoder(r.Body).Decode(&body) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		user := body.Auth.Identity.Password.User
		if user.Name != "alice" || user.Password != "secret" || user.Domain.Name != "default" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-Subject-Token", "token")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"token":{"user":{"id":"0af1","name":"alice","domain":{"id":"d","name":"default"}}}}`))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestConformance(t *testing.T) {
	server := keystone(t)
	unreachable := httptest.NewTLSServer(nil)
	unreachable.Close()
	for name, useID := range map[string]bool{"by name": false, "by ID": true} {
		want := idp.Identity{UserName: "alice"}
		if useID {
			want = idp.Identity{UserName: "0af1", PreferredUserName: "alice"}
		}
		t.Run(name, conformance.Password{
			Provider: &Provider{URL: server.URL + "/v3/", Domain: "default", UseID: useID, Client: server.Client()},
			User:     "alice", Secret: "secret", Want: want,
			Unreachable: &Provider{URL: unreachable.URL, Domain: "default", Client: unreachable.Client()},
		}.Test)
	}
}

func TestOtherDomainIsRejected(t *testing.T) {
	server := keystone(t)
	provider := &Provider{URL: server.URL, Domain: "other", Client: server.Client()}
	if got, err := provider.AuthenticatePassword(t.Context(), "alice", "secret"); got != nil || err == nil {
		t.Errorf("%v, %v", got, err)
	}
}
