package scope

import (
	"slices"
	"testing"
)

// FuzzScopes verifies that formatting a parsed scope returns the same text, and that unknown scopes
// are rejected and grant nothing.
func FuzzScopes(f *testing.F) {
	for _, seed := range []string{
		"user:full", "user:info user:check-access", "role:edit:shop", "role:system:image-puller:*:!", "role::x", "role:a:b:!:!", "role:a/b:c", "user:", "role:edit:", "role:!:x:!",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, parameter string) {
		for _, text := range Split(parameter) {
			role, err := ParseRole(text)
			if err == nil && role.String() != text {
				t.Errorf("%q is parsed as %q", text, role)
			}
			if supported := slices.Contains(Supported(), text); (Validate(text) == nil) != (supported || err == nil) {
				t.Errorf("%q: %v, as a role %v", text, Validate(text), err)
			}
			if some, all := Namespaces([]string{text}); (len(some) > 0 || all) && Validate(text) != nil {
				t.Errorf("%q is not a scope but grants %v, %v", text, some, all)
			}
		}
	})
}
