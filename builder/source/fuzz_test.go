package source

import (
	"net/url"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// FuzzAddress verifies that the log never shows the password in a repository's URL, and that a
// submodule on another server does not receive the secret.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		"https://ann:hunter2secret@git.example.com/a.git", "git@git.example.com:a.git", "ssh://ann:hunter2secret@git.example.com/a", "https://hunter2secret@git.example.com/a", "../other", "ext::sh",
		"https://git.example.com:443/a", "https://git.example.com.evil.org/a", "https://git.example.com@evil.org/a", "file:///etc", ":", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if parsed, err := url.Parse(address); err == nil && parsed.User != nil {
			password, ok := parsed.User.Password()
			if output := Anonymous(address); ok && len(password) > 8 && strings.Contains(output, password) && strings.Count(address, password) == 1 {
				t.Errorf("log shows %q as %q", address, output)
			}
		}
		separateCredentials(address, Secret{})
		g := Git{URL: "https://git.example.com/a.git", Secret: Secret{User: "ann", Password: "hunter2secret"}}
		method, err := g.auth(address)
		if err != nil || method == nil {
			return
		}
		if parsed, err := url.Parse(address); err != nil || parsed.Scheme != "https" || !strings.EqualFold(parsed.Hostname(), "git.example.com") {
			t.Errorf("secret is sent to %q", address)
		}
	})
}

// FuzzReference verifies that a reference resolves only to a branch or tag with the same name.
func FuzzReference(f *testing.F) {
	f.Add("main", "refs/heads/main", "0123456789012345678901234567890123456789")
	f.Add("", "HEAD", "ref: refs/heads/x")
	f.Add("refs/../x", "refs/heads/refs/../x", "")
	f.Fuzz(func(t *testing.T, ref, name, target string) {
		refs := []*plumbing.Reference{
			plumbing.NewHashReference(plumbing.ReferenceName(name), plumbing.NewHash(target)),
			plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.ReferenceName(target)),
		}
		if got := findReference(refs, ref); got != nil && ref != "" && ref != "HEAD" && !strings.HasSuffix(got.Name().String(), ref) {
			t.Errorf("%q resolves to %q", ref, got)
		}
	})
}
