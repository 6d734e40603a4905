package source

import (
	"net/url"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// FuzzAddress proves that a password in the address of a repository is in no log, and that a submodule elsewhere does not get the secret.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		"https://ann:hunter2secret@git.example.com/a.git", "git@git.example.com:a.git", "ssh://ann:hunter2secret@git.example.com/a", "https://hunter2secret@git.example.com/a", "../other", "ext::sh",
		"https://git.example.com:443/a", "https://git.example.com.evil.org/a", "https://git.example.com@evil.org/a", "file:///etc", ":", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if parsed, err := url.Parse(address); err == nil && parsed.User != nil {
			password, set := parsed.User.Password()
			if shown := Anonymous(address); set && len(password) > 8 && strings.Contains(shown, password) && strings.Count(address, password) == 1 {
				t.Errorf("%q is shown as %q", address, shown)
			}
		}
		separate(address, Secret{})
		g := Git{URL: "https://git.example.com/a.git", Secret: Secret{User: "ann", Password: "hunter2secret"}}
		method, err := g.auth(address)
		if err != nil || method == nil {
			return
		}
		if parsed, err := url.Parse(address); err != nil || parsed.Scheme != "https" || !strings.EqualFold(parsed.Hostname(), "git.example.com") {
			t.Errorf("the secret goes to %q", address)
		}
	})
}

// FuzzReference proves that a reference resolves to a branch or tag of its name only.
func FuzzReference(f *testing.F) {
	f.Add("main", "refs/heads/main", "0123456789012345678901234567890123456789")
	f.Add("", "HEAD", "ref: refs/heads/x")
	f.Add("refs/../x", "refs/heads/refs/../x", "")
	f.Fuzz(func(t *testing.T, ref, name, target string) {
		refs := []*plumbing.Reference{
			plumbing.NewHashReference(plumbing.ReferenceName(name), plumbing.NewHash(target)),
			plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.ReferenceName(target)),
		}
		if found := choose(refs, ref); found != nil && ref != "" && ref != "HEAD" && !strings.HasSuffix(found.Name().String(), ref) {
			t.Errorf("%q is %q", ref, found)
		}
	})
}
