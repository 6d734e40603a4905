package anyone

import (
	"errors"
	"testing"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/conformance"
)

func TestAllowConformance(t *testing.T) {
	conformance.Password{
		Provider: Allow{}, User: "alice", Secret: "any", Want: idp.Identity{UserName: "alice"}, AcceptsAnyone: true,
	}.Test(t)
}

func TestDenyRejectsAllUsers(t *testing.T) {
	for _, user := range []string{"alice", "system:admin", ""} {
		if got, err := (Deny{}).AuthenticatePassword(t.Context(), user, "any"); got != nil || !errors.Is(err, idp.ErrRefused) {
			t.Errorf("%q: %v, %v", user, got, err)
		}
	}
}
