package build

import (
	"path"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// FuzzInside proves that a directory that passes validation lies within the one of the build.
func FuzzInside(f *testing.F) {
	for _, seed := range []string{"a/b", "../a", "a/../../b", "/etc", ".", "a/..", "..a", "./../x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, directory string) {
		if len(validateInside(directory, nil)) > 0 {
			return
		}
		const root = "/build"
		if in := path.Join(root, directory); in != root && !strings.HasPrefix(in, root+"/") {
			t.Errorf("%q leads to %q", directory, in)
		}
	})
}

// FuzzGit proves that an address of a repository that passes validation is one word.
func FuzzGit(f *testing.F) {
	for _, seed := range []string{"https://example.com/a.git", "git@example.com:a.git", "--upload-pack=x", "ext::sh -c x", "a b", "file:///etc", "\x00"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, address, proxy string) {
		problems := validateGit(&buildv1.GitBuildSource{URI: address, ProxyConfig: buildv1.ProxyConfig{HTTPProxy: &proxy}}, field.NewPath("git"))
		if len(problems) == 0 && strings.ContainsAny(address, " \t\r\n\x00") {
			t.Errorf("%q is valid", address)
		}
		for _, problem := range problems {
			if len(proxy) > 8 && strings.Contains(problem.Error(), proxy) && !strings.Contains(address, proxy) && !strings.Contains("proxy is not a valid url", proxy) {
				t.Errorf("the proxy %q, which may have a password, is in %q", proxy, problem)
			}
		}
	})
}
