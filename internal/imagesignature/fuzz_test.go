package imagesignature

import "testing"

// FuzzClaims checks that every valid text contains an image and an identity, and that Open trusts
// nothing without keys.
func FuzzClaims(f *testing.F) {
	f.Add([]byte(`{"critical":{"type":"atomic container signature","image":{"docker-manifest-digest":"sha256:0"},"identity":{"docker-reference":"a"}},"optional":{"timestamp":1e300}}`))
	f.Add([]byte(`{"critical":{"type":"atomic container signature"}}{}`))
	f.Add([]byte{0xc0, 0xff})
	f.Fuzz(func(t *testing.T, text []byte) {
		if read, err := parse(text); err == nil && (read.Digest == "" || read.Identity == "") {
			t.Errorf("%q names %+v", text, read)
		}
		if read, err := Open(text, nil); err == nil {
			t.Errorf("%q is trusted: %+v", text, read)
		}
	})
}
