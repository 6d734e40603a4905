package pki

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// EncryptedResources returns the resources, as RESOURCE.GROUP, that hold secrets: Secrets, routes with their private
// keys, and clients and tokens of the OAuth server.
func EncryptedResources() []string {
	const group = ".oauth.openshift.io"
	return []string{"secrets", "routes.route.openshift.io", "oauthclients" + group, "oauthaccesstokens" + group, "oauthauthorizetokens" + group}
}

// encryptionHead begins the file.
const encryptionHead = `# The keys that the API server stores secrets with. Keep a copy beside each backup of the store: without its key
# nobody can read what is encrypted. The first key of a list encrypts, all of them decrypt.
`

// EnsureEncryption makes sure that the file encryption.yaml in dir encrypts EncryptedResources or, with encrypt false,
// only decrypts them. A new file gets a generated key for XSalsa20 and Poly1305 (secretbox). Keys in a file that exists are never changed or
// removed. Objects from before are readable in each case. It returns the path of the file, which is empty without a file and
// without encrypt.
func EnsureEncryption(dir string, encrypt bool) (path string, err error) {
	return editEncryption(dir, func(file *apiserverv1.EncryptionConfiguration) (bool, error) {
		if len(file.Resources) == 0 && !encrypt {
			return false, nil
		}
		if len(file.Resources) == 0 {
			file.Resources = []apiserverv1.ResourceConfiguration{{
				Providers: []apiserverv1.ProviderConfiguration{
					{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: []apiserverv1.Key{newEncryptionKey("key1")}}},
				},
			}}
		}
		for _, resource := range EncryptedResources() {
			if !slices.ContainsFunc(file.Resources, func(r apiserverv1.ResourceConfiguration) bool { return slices.Contains(r.Resources, resource) }) {
				file.Resources[0].Resources = append(file.Resources[0].Resources, resource)
			}
		}
		for i := range file.Resources {
			placePlain(&file.Resources[i], encrypt)
		}
		return true, nil
	})
}

// RotateEncryption adds a key to the file of EnsureEncryption, which the API server encrypts with as soon as it has read the file again.
func RotateEncryption(dir string) error {
	_, err := editEncryption(dir, func(file *apiserverv1.EncryptionConfiguration) (bool, error) {
		for i := range file.Resources {
			for _, provider := range file.Resources[i].Providers {
				if box := provider.Secretbox; box != nil {
					box.Keys = slices.Insert(box.Keys, 0, newEncryptionKey(freeName(box.Keys)))
					return true, nil
				}
			}
		}
		return false, errors.New("rotate encryption key: the cluster has none of its own; it gets one at its start unless slipway.encryptSecrets is false or apiServerArguments names a configuration of encryption")
	})
	return err
}

// placePlain puts the provider that stores plain text last, or first if nothing is to be encrypted.
func placePlain(resource *apiserverv1.ResourceConfiguration, encrypt bool) {
	plain := apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}}
	others := slices.DeleteFunc(slices.Clone(resource.Providers), func(p apiserverv1.ProviderConfiguration) bool { return p.Identity != nil })
	if encrypt {
		resource.Providers = append(others, plain)
		return
	}
	resource.Providers = append([]apiserverv1.ProviderConfiguration{plain}, others...)
}

// newEncryptionKey generates a key.
func newEncryptionKey(name string) apiserverv1.Key {
	secret := make([]byte, 32)
	rand.Read(secret)
	return apiserverv1.Key{Name: name, Secret: base64.StdEncoding.EncodeToString(secret)}
}

// freeName returns a name that none of the keys has.
func freeName(keys []apiserverv1.Key) string {
	for number := len(keys) + 1; ; number++ {
		name := fmt.Sprintf("key%d", number)
		if !slices.ContainsFunc(keys, func(k apiserverv1.Key) bool { return k.Name == name }) {
			return name
		}
	}
}

// editEncryption reads the file, lets edit change it, writes it if it differs afterwards, and returns its path. edit
// returns false if there is to be no file. The parsed file is empty if there is none.
func editEncryption(dir string, edit func(*apiserverv1.EncryptionConfiguration) (bool, error)) (string, error) {
	path := filepath.Join(dir, "encryption.yaml")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create folder of certificates: %w", err)
	}
	unlock, err := lock(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read encryption configuration: %w", err)
	}
	var file apiserverv1.EncryptionConfiguration
	if yaml.UnmarshalStrict(before, &file) != nil {
		// The cause would show a key.
		return "", fmt.Errorf("read encryption configuration %q: it is no EncryptionConfiguration of %s", path, apiserverv1.SchemeGroupVersion)
	}
	file.Kind, file.APIVersion = "EncryptionConfiguration", apiserverv1.SchemeGroupVersion.String()
	if keep, err := edit(&file); err != nil || !keep {
		return "", err
	}
	content, err := yaml.Marshal(file)
	if err != nil {
		return "", fmt.Errorf("write encryption configuration: %w", err)
	}
	content = append([]byte(encryptionHead), content...)
	if bytes.Equal(content, before) {
		return path, tighten(path)
	}
	return path, atomicfile.Write(path, content, secret)
}
