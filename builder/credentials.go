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

// credentials contains the registry credentials from a mounted secret.
type credentials struct{ registryclient.Keychain }

// readCredentials reads a mounted secret in either dockercfg format. It returns no credentials if
// the directory does not exist.
func readCredentials(dir string) (credentials, error) {
	for file, form := range map[string]corev1.SecretType{
		corev1.DockerConfigKey: corev1.SecretTypeDockercfg, corev1.DockerConfigJsonKey: corev1.SecretTypeDockerConfigJson,
	} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return credentials{}, fmt.Errorf("read registry credentials: %w", err)
		}
		chain, err := registryclient.KeychainOf([]corev1.Secret{{Type: form, Data: map[string][]byte{file: data}}})
		if err != nil {
			return credentials{}, fmt.Errorf("read registry credentials: %q is not a valid Docker credentials file", file)
		}
		return credentials{chain}, nil
	}
	return credentials{}, nil
}

// lookup returns the user name and password for a registry. Both are empty if there are none.
func (c credentials) lookup(host string) (user, password string) {
	if strings.HasSuffix(host, strings.TrimPrefix(name.DefaultRegistry, "index")) {
		host = name.DefaultRegistry // use one name for the default registry, which has several
	}
	registry, err := name.NewRegistry(host)
	if err != nil {
		return "", ""
	}
	authenticator, err := c.Resolve(registry)
	if err != nil {
		return "", ""
	}
	auth, err := authenticator.Authorization()
	if err != nil {
		return "", ""
	}
	return auth.Username, auth.Password
}

// credentialsFor returns the user name and password for a registry. For a push, it tries the push
// secret and then the pull secret. Otherwise, it tries the pull secret first. Finally, it tries the
// secrets of input images.
func (r *run) credentialsFor(host string, push bool) (user, password string) {
	first, second := r.pull, r.push
	if push {
		first, second = second, first
	}
	if user, password = first.lookup(host); password != "" {
		return user, password
	}
	if user, password = second.lookup(host); password != "" {
		return user, password
	}
	for _, image := range r.images {
		if user, password = image.lookup(host); password != "" {
			return user, password
		}
	}
	return "", ""
}
