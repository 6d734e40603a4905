package pki

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// EnsureEncryption writes `encryption.yaml` into dir, unless it exists, and returns its path: an
// EncryptionConfiguration (apiserver.config.k8s.io/v1) that stores Secrets with a generated key of
// XSalsa20 and Poly1305 (secretbox). The provider `identity` comes last, so that Secrets from before
// stay readable; without this file nothing is encrypted. The file is never replaced: what its key
// has encrypted cannot be read without it, so it belongs into every backup of the store.
func EnsureEncryption(dir string) (string, error) {
	path := filepath.Join(dir, "encryption.yaml")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create folder of certificates: %w", err)
	}
	unlock, err := lock(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, tighten(path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read encryption configuration: %w", err)
	}
	key := make([]byte, 32)
	rand.Read(key)
	content := fmt.Sprintf(`# The key that Secrets are stored with. Keep a copy beside each backup of the store.
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox:
      keys:
      - name: key1
        secret: %s
  - identity: {}
`, base64.StdEncoding.EncodeToString(key))
	return path, atomicfile.Write(path, []byte(content), secret)
}
