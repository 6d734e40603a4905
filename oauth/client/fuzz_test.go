package client

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzRedirect verifies, for arbitrary redirect URIs, that the server redirects only to the
// client's hosts.
func FuzzRedirect(f *testing.F) {
	for _, seed := range []string{
		"https://app.example.com/callback", "https://app.example.com/callback/x?y=z", "https://app.example.com@evil.org/callback", "https://app.example.com.evil.org/callback",
		"https://app.example.com/callback/../other", `https://app.example.com\@evil.org/callback`, "https://app.example.com/callback#x", "javascript:alert(1)", "//evil.org/callback",
		"https://app.example.com/callback/%2e%2e/other", "HTTPS://app.example.com/callback", "https:/app.example.com/callback", "https:app.example.com",
	} {
		f.Add(seed)
	}
	c := &Client{RedirectURIs: []string{"https://app.example.com/callback", "http://localhost:9000/"}}
	f.Fuzz(func(t *testing.T, query string) {
		to, err := c.Redirect(query)
		if err != nil {
			return
		}
		u, err := url.Parse(to)
		if err != nil || to != query {
			t.Fatalf("%q redirects to %q: %v", query, to, err)
		}
		first := strings.HasPrefix(to, "https://app.example.com/callback") && strings.HasPrefix(u.Path, "/callback")
		if !first && !strings.HasPrefix(to, "http://localhost:9000/") && to != "http://localhost:9000" && !strings.HasPrefix(to, "http://localhost:9000?") {
			// Schemes are case-insensitive.
			if u.Scheme+"://"+u.Host != "https://app.example.com" && u.Scheme+"://"+u.Host != "http://localhost:9000" {
				t.Errorf("%q is allowed", query)
			}
		}
		if strings.ContainsAny(to, "\\#\r\n\t ") || u.User != nil {
			t.Errorf("%q is allowed", query)
		}
	})
}
