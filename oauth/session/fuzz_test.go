package session

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// FuzzCookie verifies that a cookie that the server did not create does not identify a user.
func FuzzCookie(f *testing.F) {
	sessions, err := New("ssn", time.Hour, []Secret{{Authentication: strings.Repeat("a", 32), Encryption: strings.Repeat("b", 32)}})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "MTcwMDAwMDAwMHx4fHg=", "====", strings.Repeat("A", 4096), "a|b|c", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		r := &http.Request{Header: http.Header{"Cookie": {"ssn=" + value, csrfCookie + "=" + value}}}
		if user, ok := sessions.User(r); ok {
			t.Errorf("%q is a session of %+v", value, user)
		}
		if CheckCSRF(r, "") {
			t.Errorf("an empty form value matches the cookie %q", value)
		}
	})
}
