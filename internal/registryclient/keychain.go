package registryclient

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
)

// Keychain contains the credentials from pull secrets. The most specific entry for a repository
// applies.
type Keychain []credential

type credential struct {
	host, path string
	auth       authn.AuthConfig
}

// KeychainOf reads the secrets that contain registry credentials and ignores others. If it cannot
// read a secret, it returns an error together with the other secrets' credentials.
func KeychainOf(secrets []corev1.Secret) (Keychain, error) {
	var chain Keychain
	var problem error
	for _, secret := range secrets {
		entries, err := entriesOf(secret)
		if err != nil {
			problem = fmt.Errorf("read pull secret %q: %w", secret.Name, err)
		}
		for server, auth := range entries {
			if auth.Username == "" && auth.Password == "" {
				auth.Username, auth.Password = decode(auth.Auth)
			}
			auth.Auth = ""
			host, path := location(server)
			chain = append(chain, credential{host, path, auth})
		}
	}
	slices.SortStableFunc(chain, func(a, b credential) int { return len(b.path) - len(a.path) })
	return chain, problem
}

// KeychainOfFile reads a file with Docker or Podman registry credentials: config.json or
// .dockercfg.
func KeychainOfFile(path string) (Keychain, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read registry credentials: %w", err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(content, &keys); err != nil {
		return nil, fmt.Errorf("parse credentials of registries %q: %w", path, err)
	}
	secret := corev1.Secret{Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: content, corev1.DockerConfigJsonKey: content}}
	if _, current := keys["auths"]; current {
		secret.Type = corev1.SecretTypeDockerConfigJson
	}
	chain, err := KeychainOf([]corev1.Secret{secret})
	if err != nil {
		return nil, fmt.Errorf("parse credentials of registries %q: %w", path, errors.Unwrap(err))
	}
	return chain, nil
}

// entriesOf returns a secret's credentials, keyed by server.
func entriesOf(secret corev1.Secret) (entries map[string]authn.AuthConfig, err error) {
	switch secret.Type {
	case corev1.SecretTypeDockercfg:
		err = json.Unmarshal(secret.Data[corev1.DockerConfigKey], &entries)
	case corev1.SecretTypeDockerConfigJson:
		var file struct {
			Auths map[string]authn.AuthConfig `json:"auths"`
		}
		err = json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &file)
		entries = file.Auths
	}
	return entries, err
}

func decode(auth string) (user, password string) {
	plain, err := base64.StdEncoding.DecodeString(auth)
	if err != nil {
		return "", ""
	}
	user, password, _ = strings.Cut(string(plain), ":")
	return user, password
}

// location splits a server address from a client's credentials file, such as
// "https://registry.example.com/v1/", into host and path.
func location(server string) (host, path string) {
	_, rest, ok := strings.Cut(server, "://")
	if !ok {
		rest = server
	}
	host, path, _ = strings.Cut(rest, "/")
	path = strings.Trim(path, "/")
	if path == "v1" || path == "v2" {
		path = ""
	}
	return canonical(host), path
}

// canonical returns a registry's unique name, because the default public registry has two names.
func canonical(host string) string {
	registry, err := name.NewRegistry(host)
	if err != nil {
		return host
	}
	return registry.RegistryStr()
}

// Resolve returns the credentials for a repository, or Anonymous.
func (k Keychain) Resolve(resource authn.Resource) (authn.Authenticator, error) {
	host := canonical(resource.RegistryStr())
	_, path, _ := strings.Cut(resource.String(), "/")
	for _, c := range k {
		if c.host == host && (c.path == "" || path == c.path || strings.HasPrefix(path, c.path+"/")) {
			return authn.FromConfig(c.auth), nil
		}
	}
	return authn.Anonymous, nil
}
