package session

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// Secret is a pair of keys: a signing key (32 or 64 bytes) and an encryption key (16, 24 or 32
// bytes).
type Secret legacyv1.SessionSecret

func (s Secret) validate() error {
	var problems []error
	if n := len(s.Authentication); n != 32 && n != 64 {
		problems = append(problems, fmt.Errorf("authentication has %d bytes, must have 32 or 64", n))
	}
	if n := len(s.Encryption); n != 16 && n != 24 && n != 32 {
		problems = append(problems, fmt.Errorf("encryption has %d bytes, must have 16, 24 or 32", n))
	}
	return errors.Join(problems...)
}

// ReadSecrets reads a file with a SessionSecrets object.
func ReadSecrets(path string) ([]Secret, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read session secrets: %w", err)
	}
	var file legacyv1.SessionSecrets
	if err := yaml.UnmarshalStrict(content, &file); err != nil {
		// The cause could contain a secret, so the message does not include it.
		return nil, fmt.Errorf("parse session secrets %q: it is not a SessionSecrets object", path)
	}
	if len(file.Secrets) == 0 {
		return nil, fmt.Errorf("read session secrets %q: it contains no secrets", path)
	}
	var secrets []Secret
	for i, secret := range file.Secrets {
		if err := Secret(secret).validate(); err != nil {
			return nil, fmt.Errorf("read session secrets %q: secret %d: %w", path, i, err)
		}
		secrets = append(secrets, Secret(secret))
	}
	return secrets, nil
}

// EnsureSecrets reads a secrets file. If the file is missing, EnsureSecrets creates it with random
// secrets.
func EnsureSecrets(path string) ([]Secret, error) {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return ReadSecrets(path)
	}
	content, err := yaml.Marshal(legacyv1.SessionSecrets{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SessionSecrets"},
		Secrets:  []legacyv1.SessionSecret{{Authentication: random(32), Encryption: random(16)}},
	})
	if err != nil {
		return nil, fmt.Errorf("write session secrets: %w", err)
	}
	if err := atomicfile.Write(path, content, 0o600); err != nil {
		return nil, fmt.Errorf("write session secrets: %w", err)
	}
	return ReadSecrets(path)
}

// random returns n random bytes as 2n hexadecimal characters.
func random(n int) string {
	bytes := make([]byte, n)
	_, _ = rand.Read(bytes) // never fails: the runtime ends the process instead
	return hex.EncodeToString(bytes)
}
