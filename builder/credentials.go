package builder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/internal/registryclient"
)

// credentials are those of a mounted secret for registries.
type credentials struct{ registryclient.Keychain }

// readCredentials reads a directory with the file of a dockercfg secret, of either form. One that does not exist has none.
func readCredentials(dir string) (credentials, error) {
	for file, form := range map[string]corev1.SecretType{
		corev1.DockerConfigKey: corev1.SecretTypeDockercfg, corev1.DockerConfigJsonKey: corev1.SecretTypeDockerConfigJson,
	} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return credentials{}, fmt.Errorf("read credentials of registries: %w", err)
		}
		chain, err := registryclient.KeychainOf([]corev1.Secret{{Type: form, Data: map[string][]byte{file: data}}})
		if err != nil {
			return credentials{}, fmt.Errorf("read credentials of registries: %q is no file of docker's credentials", file)
		}
		return credentials{chain}, nil
	}
	return credentials{}, nil
}

// of is the user and the password for a registry.
func (c credentials) of(host string) (user, password string) {
	if strings.HasSuffix(host, strings.TrimPrefix(name.DefaultRegistry, "index")) {
		host = name.DefaultRegistry // whichever of its servers it is
	}
	registry, err := name.NewRegistry(host)
	if err != nil {
		return "", ""
	}
	found, err := c.Resolve(registry)
	if err != nil {
		return "", ""
	}
	auth, err := found.Authorization()
	if err != nil {
		return "", ""
	}
	return auth.Username, auth.Password
}

// credentialsOf are those for a registry: to push, first those to push with, and to pull the other way around.
func (r *run) credentialsOf(host string, push bool) (user, password string) {
	first, second := r.pull, r.push
	if push {
		first, second = second, first
	}
	if user, password = first.of(host); password != "" {
		return user, password
	}
	if user, password = second.of(host); password != "" {
		return user, password
	}
	for _, image := range r.images {
		if user, password = image.of(host); password != "" {
			return user, password
		}
	}
	return "", ""
}
