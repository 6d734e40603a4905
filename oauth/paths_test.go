package oauth

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPathsWithoutLoginAreListed checks the list of paths that are served without authentication.
// The matrix in test/scenario/attack does not contain these paths, because no role lists them.
// Review a new path as you would review a permission that is granted to all users.
func TestPathsWithoutLoginAreListed(t *testing.T) {
	want := []string{
		"/.well-known/oauth-authorization-server", "/login", "/login/", "/logout", "/oauth/approve", "/oauth/authorize", "/oauth/token",
		"/oauth/token/display", "/oauth/token/implicit", "/oauth/token/request", "/oauth2callback/",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(newFixture(t, nil).routes))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
