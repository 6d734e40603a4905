package registryclient

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
)

// FuzzKeychain checks that the credentials of one server are never sent to another server.
func FuzzKeychain(f *testing.F) {
	for _, seed := range []string{
		"registry.example.com", "https://registry.example.com/v1/", "registry.example.com/team", "registry.example.com.evil.org", "evil.org/registry.example.com", "", "*", "[::1]:5000",
		"https://evil.org@registry.example.com",
	} {
		f.Add(seed, `{"auths":{"`+seed+`":{"auth":"YW5uOnNlY3JldA=="}}}`)
	}
	repository, err := name.NewRepository("registry.example.com/team/app")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, server, file string) {
		chain := Keychain{}
		host, path := location(server)
		chain = append(chain, credential{host, path, authn.AuthConfig{Username: "ann"}})
		if got, err := chain.Resolve(repository); err != nil || got != authn.Anonymous && host != "registry.example.com" {
			t.Errorf("the credentials of %q are sent to %q: %v", server, repository, err)
		}
		for _, kind := range []corev1.SecretType{corev1.SecretTypeDockercfg, corev1.SecretTypeDockerConfigJson} {
			read, _ := KeychainOf([]corev1.Secret{{Type: kind, Data: map[string][]byte{corev1.DockerConfigKey: []byte(file), corev1.DockerConfigJsonKey: []byte(file)}}})
			if _, err := read.Resolve(repository); err != nil {
				t.Errorf("%q: %v", file, err)
			}
		}
	})
}
