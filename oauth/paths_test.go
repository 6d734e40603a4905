package oauth

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPathsWithoutLoginAreListed holds the paths that answer before authentication. The matrix of
// test/scenario/attack does not see them, since no role names them: review a new one as a right of
// everybody.
func TestPathsWithoutLoginAreListed(t *testing.T) {
	want := []string{
		"/.well-known/oauth-authorization-server", "/login", "/login/", "/logout", "/oauth/approve", "/oauth/authorize", "/oauth/token",
		"/oauth/token/display", "/oauth/token/implicit", "/oauth/token/request", "/oauth2callback/",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(newWorld(t, nil).routes))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
