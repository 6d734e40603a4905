package login

import (
	"net/url"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/redirect"
)

// FuzzState verifies, for arbitrary states, that a browser that returns with the state is
// redirected only to a URL on this server.
func FuzzState(f *testing.F) {
	for _, seed := range []string{"/oauth/authorize?client_id=a", "//evil.org", "/\\evil.org", "https://evil.org", "/\t/evil.org", "/%2f/evil.org", "", "javascript:alert(1)"} {
		f.Add(seed, "")
		f.Add("/", encodeState("x", seed))
	}
	base, err := url.Parse("https://master.example.com:8443/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, then, state string) {
		local := redirect.Local(then, "/")
		if csrf, back := decodeState(encodeState("secret", local)); csrf != "secret" || back != local {
			t.Errorf("%q is decoded as %q and %q", local, csrf, back)
		}
		_, back := decodeState(state)
		for _, to := range []string{local, back} {
			u, err := base.Parse(to)
			if err != nil || u.Host != base.Host || u.Scheme != base.Scheme || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
				t.Errorf("the redirect target is %q: %v", to, err)
			}
		}
	})
}
