package buildcontroller

import (
	"slices"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzSourceSecret verifies that a secret for one directory on one server does not match any other
// repository.
func FuzzSourceSecret(f *testing.F) {
	for _, seed := range []string{
		"https://git.example.com/team/app.git", "https://git.example.com/team/../other/app.git", "git@git.example.com:team/app.git", "https://git.example.com.evil.org/team/x",
		"https://git.example.com@evil.org/team/x", "https://evil.org/git.example.com/team/x", "https://git.example.com/team/%2e%2e/other", "HTTPS://GIT.example.com/team/x",
	} {
		f.Add(seed)
	}
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: "team", Annotations: map[string]string{buildv1.BuildSourceSecretMatchURIAnnotationPrefix + "1": "https://git.example.com/team/*"},
	}}
	f.Fuzz(func(t *testing.T, repository string) {
		if sourceSecret([]corev1.Secret{secret}, repository) == nil {
			return
		}
		address, ok := parseRepository(repository)
		if !ok || address.Scheme != "https" || !strings.EqualFold(address.Host, "git.example.com") || !strings.HasPrefix(address.Path, "/team/") ||
			slices.Contains(strings.Split(address.Path, "/"), "..") {
			t.Errorf("secret matches %q", repository)
		}
	})
}
