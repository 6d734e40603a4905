package oauth

import (
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/oauth/token"
)

// access issues an access token for the user with the given name.
func access(t *testing.T, w *fixture, name string) string {
	t.Helper()
	user, err := w.users.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	grant, err := w.issuer.Access(t.Context(), token.Grant{Client: must(t, w, "demo"), UserName: name, UserUID: string(user.UID)})
	if err != nil {
		t.Fatal(err)
	}
	return grant.Secret
}

func TestLogoutChangesGenerationOfUser(t *testing.T) {
	w := newFixture(t, nil)
	browser := w.browser()
	w.logIn(browser, "alice", ask(demo()))
	w.logIn(w.browser(), "bob", ask(demo()))
	s := &Server{common: w.common}
	s.current.Store(w.server)
	generation := func(secret string) string {
		t.Helper()
		got, err := s.Generation(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first, second, other := access(t, w, "alice"), access(t, w, "alice"), access(t, w, "bob")
	before := generation(second)

	// The request has no session cookie of the login pages, because those sessions end before the
	// console's session.
	if err := s.LogOut(httptest.NewRecorder(), httptest.NewRequest("POST", "/console/logout", nil), first); err != nil {
		t.Fatal(err)
	}
	after := generation(second)
	if after == before || generation(other) != "" {
		t.Errorf("generation %q, previously %q; generation of another user: %q", after, before, generation(other))
	}
	if got := w.get(browser, ask(demo())); got.at().Path != "/login" {
		t.Errorf("after the logout, the login pages redirect to %s", got.at())
	}

	w.logOut(w.browser(), "/logout")
	w.logIn(browser, "alice", ask(demo()))
	w.logOut(browser, "/logout")
	if got := generation(second); got == after {
		t.Error("a logout from the login pages does not change the generation")
	}
	for name, secret := range map[string]string{"deleted by the logout": first, "missing": "sha256~" + first[8:] + "A", "empty": ""} {
		if got, err := s.Generation(t.Context(), secret); !apierrors.IsNotFound(err) {
			t.Errorf("a token %s: %q, %v", name, got, err)
		}
	}
	if err := w.users.Delete(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Generation(t.Context(), other); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted user: %q, %v", got, err)
	}
	if err := s.LogOut(httptest.NewRecorder(), httptest.NewRequest("POST", "/console/logout", nil), other); err != nil {
		t.Errorf("the logout of a deleted user: %v", err)
	}
}
