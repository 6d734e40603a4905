package record

import "testing"

// FuzzParseReference checks that a reference that is reassembled from its parsed parts refers to
// the same image.
func FuzzParseReference(f *testing.F) {
	for _, seed := range []string{
		"busybox", "registry.example.com:5000/team/app:v1", "localhost/app:v1", "[::1]:5000/app", "a@sha256:" + digits, "A/b", "a/../b", "x:\n", "//", "user@host/app",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := ParseReference(text)
		if err != nil {
			return
		}
		full := first.Name()
		if first.Tag != "" {
			full += ":" + first.Tag
		}
		if first.Digest != "" {
			full += "@" + first.Digest
		}
		if ref, err := ParseReference(full); err != nil || ref != first {
			t.Errorf("%q is %+v, and %q is %+v, %v", text, first, full, ref, err)
		}
	})
}

const digits = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
