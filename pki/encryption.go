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

// EncryptedResources returns the resources that contain secrets, as RESOURCE.GROUP: Secrets, routes
// with their private keys, and the OAuth server's clients and tokens.
func EncryptedResources() []string {
	const group = ".oauth.openshift.io"
	return []string{
		"secrets", "routes.route.openshift.io",
		"oauthclients" + group, "oauthaccesstokens" + group, "oauthauthorizetokens" + group,
	}
}

// encryptionHead is the comment at the beginning of the encryption file.
const encryptionHead = `# The API server encrypts secrets with these keys. Keep a copy with each backup of etcd: without its key,
# encrypted data is lost. The first key of a list encrypts. All keys decrypt.
`

// EnsureEncryption ensures that the encryption.yaml file in dir makes the API server encrypt
// EncryptedResources or, if encrypt is false, only decrypt them. A new file contains a generated
// key for XSalsa20 and Poly1305 (secretbox). EnsureEncryption never changes or removes the keys in
// an existing file, so existing objects remain readable. It returns the path of the file. The path
// is empty if the file does not exist and encrypt is false.
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

// RotateEncryption adds a new encryption key to the encryption file. The API server encrypts with
// the new key after it reloads the file.
func RotateEncryption(dir string) error {
	return editKeys(dir, func(keys []apiserverv1.Key) []apiserverv1.Key {
		return slices.Insert(keys, 0, newEncryptionKey(freeName(keys)))
	})
}

// EncryptionFile returns the path of the file that EnsureEncryption writes.
func EncryptionFile(dir string) string { return encryptionFile(dir) }

// EncryptionKey is a generated key that masters add to their encryption files (Add) and then
// encrypt with (Use).
type EncryptionKey struct{ key apiserverv1.Key }

// NewEncryptionKey generates a key.
func NewEncryptionKey() *EncryptionKey { return &EncryptionKey{newEncryptionKey("")} }

// Add adds the key to the encryption file, for decryption only. If the cluster has several API
// servers, all of them must load the key before any of them encrypts with it.
func (e *EncryptionKey) Add(dir string) error {
	return editKeys(dir, func(keys []apiserverv1.Key) []apiserverv1.Key {
		if e.index(keys) >= 0 {
			return keys
		}
		if e.key.Name == "" {
			e.key.Name = freeName(keys)
		}
		return slices.Insert(keys, min(1, len(keys)), e.key)
	})
}

// Use makes the key the encryption key of the file. Add must have added the key to the file before.
func (e *EncryptionKey) Use(dir string) error {
	return editKeys(dir, func(keys []apiserverv1.Key) []apiserverv1.Key {
		if i := e.index(keys); i > 0 {
			keys = slices.Insert(slices.Delete(keys, i, i+1), 0, e.key)
		}
		return keys
	})
}

func (e *EncryptionKey) index(keys []apiserverv1.Key) int {
	return slices.IndexFunc(keys, func(k apiserverv1.Key) bool { return k.Secret == e.key.Secret })
}

// ReplaceEncryption replaces the encryption file with another master's file. It appends the keys
// that only the previous file contains to the list, because backups might require them.
func ReplaceEncryption(dir string, content []byte) error {
	var former []apiserverv1.Key
	err := editKeys(dir, func(keys []apiserverv1.Key) []apiserverv1.Key {
		former = slices.Clone(keys)
		return keys
	})
	if err != nil && !errors.Is(err, errNoKey) {
		return err
	}
	if err := atomicfile.Write(encryptionFile(dir), content, secret); err != nil {
		return err
	}
	return editKeys(dir, func(keys []apiserverv1.Key) []apiserverv1.Key {
		for _, key := range former {
			if (&EncryptionKey{key}).index(keys) < 0 {
				keys = append(keys, key)
			}
		}
		return keys
	})
}

// errNoKey is the error for a file that contains no generated key.
var errNoKey = errors.New("rotate encryption key: Slipway has not generated a key; it generates one at its start " +
	"unless slipway.encryptSecrets is false or apiServerArguments sets an encryption configuration")

// editKeys edits the keys that Slipway has generated in the file.
func editKeys(dir string, edit func([]apiserverv1.Key) []apiserverv1.Key) error {
	_, err := editEncryption(dir, func(file *apiserverv1.EncryptionConfiguration) (bool, error) {
		for i := range file.Resources {
			for _, provider := range file.Resources[i].Providers {
				if box := provider.Secretbox; box != nil {
					box.Keys = edit(box.Keys)
					return true, nil
				}
			}
		}
		return false, errNoKey
	})
	return err
}

// placePlain moves the plain text provider to the end, or to the beginning if encrypt is false: the
// API server encrypts with the first provider.
func placePlain(resource *apiserverv1.ResourceConfiguration, encrypt bool) {
	plain := apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}}
	providers := slices.DeleteFunc(slices.Clone(resource.Providers), func(p apiserverv1.ProviderConfiguration) bool { return p.Identity != nil })
	if encrypt {
		resource.Providers = append(providers, plain)
		return
	}
	resource.Providers = append([]apiserverv1.ProviderConfiguration{plain}, providers...)
}

// newEncryptionKey generates a key.
func newEncryptionKey(name string) apiserverv1.Key {
	secret := make([]byte, 32)
	rand.Read(secret)
	return apiserverv1.Key{Name: name, Secret: base64.StdEncoding.EncodeToString(secret)}
}

// freeName returns an unused name for a key.
func freeName(keys []apiserverv1.Key) string {
	for number := len(keys) + 1; ; number++ {
		name := fmt.Sprintf("key%d", number)
		if !slices.ContainsFunc(keys, func(k apiserverv1.Key) bool { return k.Name == name }) {
			return name
		}
	}
}

func encryptionFile(dir string) string { return filepath.Join(dir, "encryption.yaml") }

// editEncryption reads the file, calls edit, and writes the file if its content changed. If the
// file does not exist, edit is called with an empty configuration. If edit returns false,
// editEncryption writes nothing and returns an empty path.
func editEncryption(dir string,
	edit func(*apiserverv1.EncryptionConfiguration) (bool, error)) (string, error) {
	path := encryptionFile(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create certificate directory: %w", err)
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
		// err could contain a key, so the message does not include err.
		return "", fmt.Errorf("read encryption configuration %q: it is not an EncryptionConfiguration of %s",
			path, apiserverv1.SchemeGroupVersion)
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
