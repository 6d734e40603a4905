package github

import (
	"testing"

	"github.com/slipway-platform/slipway/internal/oauthtest"
	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/conformance"
)

func github(t *testing.T, organizations, teams []string) conformance.Redirect {
	type object map[string]any
	s := (&oauthtest.Server{
		Authorize: "/login/oauth/authorize", Token: "/login/oauth/access_token",
		API: map[string]any{
			"/api/v3/user":       object{"id": 12, "login": "alice", "name": "Alice A."},
			"/api/v3/user/orgs":  []object{{"login": "Example"}},
			"/api/v3/user/teams": []object{{"slug": "dev", "organization": object{"login": "Other"}}},
		},
	}).Start(t)
	host := s.Listener.Addr().String()
	provider := New(Settings{ClientID: oauthtest.ClientID, ClientSecret: oauthtest.ClientSecret, Host: host,
		Organizations: organizations, Teams: teams, Client: s.Client()})
	return conformance.Redirect{Provider: provider, Client: s.Client(), Secret: oauthtest.ClientSecret,
		Want: idp.Identity{UserName: "12", PreferredUserName: "alice", Name: "Alice A."}}
}

func TestConformance(t *testing.T) {
	t.Run("everybody", github(t, nil, nil).Test)
	t.Run("an organization", github(t, []string{"nobody", "example"}, nil).Test)
	t.Run("a team", github(t, nil, []string{"other/dev"}).Test)
}

func TestUsersOfOtherGroupsAreRejected(t *testing.T) {
	t.Run("another organization", github(t, []string{"other"}, nil).TestRefused)
	t.Run("another team of the organization", github(t, nil, []string{"example/dev", "other/ops"}).TestRefused)
}
