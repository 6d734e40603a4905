package htpasswd

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzFile verifies that a line without a valid hash accepts no password, and that parsing an
// arbitrary file does not panic.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"ann:$2y$05$abcdefghijklmnopqrstuuBJ0p6x4kU8G0jQ0kq8m6m7Q5cVf0uLy", "ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "ann:$apr1$x$", "ann:$apr1$", "ann:{SHA}", "ann:", ":x", "#a:b", "a\r\nb:c",
		"ann:$2", "ann:plain", "ann:$1$salt$hash",
	} {
		f.Add([]byte(seed), "password")
	}
	// Replace bcrypt's comparison, because it would take most of the test's time.
	p := Provider{compare: func(_, _ []byte) error { return bytes.ErrTooLarge }}
	f.Fuzz(func(t *testing.T, content []byte, password string) {
		seen := map[string]bool{}
		table, err := parse(content)
		if err != nil {
			t.Fatal(err) // not possible, because the input is shorter than the limits
		}
		for _, e := range table.entries {
			if e.user == "" || seen[e.user] || strings.ContainsAny(e.user, ":\n") {
				t.Errorf("user %q of %q", e.user, content)
			}
			seen[e.user] = true
			if p.matches(table, e.user, password) && !strings.HasPrefix(e.hash, "{SHA}") && !strings.HasPrefix(e.hash, "$apr1$") {
				t.Errorf("%q is the password of %q", password, e.hash)
			}
		}
	})
}
