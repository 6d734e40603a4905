package registryclient

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMostSpecificCredentialsApply(t *testing.T) {
	chain, err := KeychainOf([]corev1.Secret{
		{Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte(
			`{"registry.example.com:5000": {"username": "all", "password": "a"}, "https://` + name.DefaultRegistry + `/v1/": {"auth": "aHViOmI="}}`)}},
		{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(
			`{"auths": {"registry.example.com:5000/team": {"username": "team", "password": "c"}}}`)}},
		{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{corev1.DockerConfigKey: []byte(`nonsense`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for repository, want := range map[string]string{
		"registry.example.com:5000/other/app": "all", "registry.example.com:5000/team/app": "team", "registry.example.com:5000/teams/app": "all",
		"busybox": "hub", "registry.example.com/other/app": "",
	} {
		parsed, err := name.NewRepository(repository)
		if err != nil {
			t.Fatal(err)
		}
		resolved, err := chain.Resolve(parsed)
		if err != nil {
			t.Fatal(err)
		}
		auth, err := resolved.Authorization()
		if err != nil || auth.Username != want {
			t.Errorf("%s: user %q, %v, want %q", repository, auth.Username, err, want)
		}
	}
}

func TestBrokenPullSecretIsReported(t *testing.T) {
	chain, err := KeychainOf([]corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Name: "broken"}, Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte(`{`)}},
		{Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte(`{"a.example.com": {"username": "u"}}`)}},
	})
	if err == nil || len(chain) != 1 {
		t.Errorf("%d credentials, %v", len(chain), err)
	}
}
