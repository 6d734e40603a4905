package build

import (
	"path"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// FuzzInside verifies that a valid directory is inside the build's directory.
func FuzzInside(f *testing.F) {
	for _, seed := range []string{"a/b", "../a", "a/../../b", "/etc", ".", "a/..", "..a", "./../x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, directory string) {
		if len(validateLocalPath(directory, nil)) > 0 {
			return
		}
		const root = "/build"
		if in := path.Join(root, directory); in != root && !strings.HasPrefix(in, root+"/") {
			t.Errorf("%q resolves to %q", directory, in)
		}
	})
}

// FuzzGit verifies that a valid repository URL is a single word.
func FuzzGit(f *testing.F) {
	for _, seed := range []string{"https://example.com/a.git", "git@example.com:a.git", "--upload-pack=x", "ext::sh -c x", "a b", "file:///etc", "\x00"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, address, proxy string) {
		errs := validateGit(&buildv1.GitBuildSource{URI: address, ProxyConfig: buildv1.ProxyConfig{HTTPProxy: &proxy}}, field.NewPath("git"))
		if len(errs) == 0 && strings.ContainsAny(address, " \t\r\n\x00") {
			t.Errorf("%q is valid", address)
		}
		for _, problem := range errs {
			if len(proxy) > 8 && strings.Contains(problem.Error(), proxy) && !strings.Contains(address, proxy) && !strings.Contains("proxy is not a valid url", proxy) {
				t.Errorf("proxy %q, which can contain a password, is in %q", proxy, problem)
			}
		}
	})
}
