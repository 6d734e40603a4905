// Package conformance provides the tests that every identity provider must pass.
package conformance

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/oauth/idp"
)

// Password tests an identity provider that checks passwords.
type Password struct {
	// Provider is the provider under test.
	Provider idp.Password
	// User and Secret are valid credentials for the identity Want.
	User, Secret string
	Want         idp.Identity
	// AcceptsAnyone means that the provider accepts any name with any password.
	AcceptsAnyone bool
	// Unreachable is a provider of the same kind whose server or file is missing. It is optional.
	Unreachable idp.Password
}

// Test runs the tests.
func (c Password) Test(t *testing.T) {
	t.Run("the correct password returns the identity", func(t *testing.T) {
		c.accepted(t, c.User, c.Secret)
	})
	t.Run("concurrent logins return their own identities", c.concurrent)
	t.Run("an empty password is rejected", func(t *testing.T) { c.expectRejected(t, c.User, "") })
	t.Run("an empty name is rejected", func(t *testing.T) { c.expectRejected(t, "", c.Secret) })
	if !c.AcceptsAnyone {
		t.Run("a wrong password is rejected", func(t *testing.T) { c.expectRejected(t, c.User, c.Secret+"x") })
		t.Run("an unknown user is rejected", func(t *testing.T) { c.expectRejected(t, "nobody-of-that-name", c.Secret) })
		t.Run("a name with special characters is rejected", c.hostile)
	}
	if c.Unreachable != nil {
		t.Run("an unreachable provider returns an error without the password", c.unreachable)
	}
}

func (c Password) accepted(t *testing.T, user, password string) {
	t.Helper()
	got, err := c.Provider.AuthenticatePassword(t.Context(), user, password)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Want, *got); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
}

func (c Password) expectRejected(t *testing.T, user, password string) {
	t.Helper()
	got, err := c.Provider.AuthenticatePassword(t.Context(), user, password)
	if got != nil || !errors.Is(err, idp.ErrRefused) {
		t.Errorf("user %.40q: identity %v, error %v, want a rejection", user, got, err)
	}
}

func (c Password) concurrent(t *testing.T) {
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			if i%2 == 0 {
				c.accepted(t, c.User, c.Secret)
			} else if !c.AcceptsAnyone {
				c.expectRejected(t, c.User, "wrong")
			}
		})
	}
	group.Wait()
}

// hostile tries user names that contain wildcards, operators or paths of the providers' query
// languages.
func (c Password) hostile(t *testing.T) {
	for _, name := range []string{
		"*", c.User + "*", c.User + ")(uid=*", "*)(|(uid=*", c.User + "\x00", "\x00", "\\2a", "(&)", "cn=admin,dc=example,dc=org",
		c.User + "/../admin", "../" + c.User, c.User + "\nadmin", c.User + "\r\nX-Remote-User: admin", c.User + ":" + c.Secret + ":x",
		"' OR '1'='1", "%00", "~", ".", "..", "#" + c.User, strings.Repeat("a", 300), strings.Repeat("é", 5000), "\xff\xfe",
	} {
		got, err := c.Provider.AuthenticatePassword(t.Context(), name, c.Secret)
		if got != nil || err == nil {
			t.Errorf("user %.40q: accepted as %+v", name, got)
		}
	}
}

func (c Password) unreachable(t *testing.T) {
	const password = "a-password-that-no-error-may-hold"
	got, err := c.Unreachable.AuthenticatePassword(t.Context(), c.User, password)
	if got != nil || err == nil || errors.Is(err, idp.ErrRefused) {
		t.Fatalf("identity %v, error %v, want an error other than a rejection", got, err)
	}
	if strings.Contains(err.Error(), password) {
		t.Error("the error contains the password")
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := c.Unreachable.AuthenticatePassword(canceled, c.User, password); got != nil || err == nil {
		t.Errorf("identity %v, error %v after the request has ended", got, err)
	}
}
