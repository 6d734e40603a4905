package gitlab

import (
	"testing"

	"github.com/slipway-platform/slipway/internal/oauthtest"
	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/conformance"
)

func TestConformance(t *testing.T) {
	for name, legacy := range map[string]bool{"OpenID Connect": false, "own API": true} {
		s := (&oauthtest.Server{
			Authorize: "/oauth/authorize", Token: "/oauth/token", Claims: map[string]any{"sub": "7"},
			API: map[string]any{
				"/oauth/userinfo": map[string]any{"sub": "7", "nickname": "alice", "name": "Alice A.", "email": "a@example.com"},
				"/api/v4/user":    map[string]any{"id": 7, "username": "alice", "name": "Alice A.", "email": "a@example.com"},
			},
		}).Start(t)
		t.Run(name, conformance.Redirect{
			Provider: New(Settings{URL: s.URL + "/", ClientID: oauthtest.ClientID, ClientSecret: oauthtest.ClientSecret, Legacy: legacy, Client: s.Client()}),
			Client:   s.Client(), Secret: oauthtest.ClientSecret,
			Want: idp.Identity{UserName: "7", PreferredUserName: "alice", Name: "Alice A.", Email: "a@example.com"},
		}.Test)
	}
}
