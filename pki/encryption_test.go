package pki

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
)

var storedName = value.DefaultContext("/registry/secrets/default/a")

// transformer loads the file as the API server does, and returns the transformer for Secrets.
func transformer(t *testing.T, path string) value.Transformer {
	t.Helper()
	config, err := encryptionconfig.LoadEncryptionConfig(t.Context(), path, false, "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range EncryptedResources() {
		if config.Transformers[schema.ParseGroupResource(resource)] == nil {
			t.Errorf("%s is not encrypted", resource)
		}
	}
	return config.Transformers[schema.GroupResource{Resource: "secrets"}]
}

func encrypted(t *testing.T, secrets value.Transformer, text string) []byte {
	t.Helper()
	data, err := secrets.TransformToStorage(t.Context(), []byte(text), storedName)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// decrypted returns the plain text of stored data. It also reports whether the data must be
// rewritten.
func decrypted(t *testing.T, secrets value.Transformer, data []byte) (string, bool) {
	t.Helper()
	text, stale, err := secrets.TransformFromStorage(t.Context(), data, storedName)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), stale
}

// encryption calls EnsureEncryption and returns the path and content of the file.
func encryption(t *testing.T, dir string, encrypt bool) (path, content string) {
	t.Helper()
	path, err := EnsureEncryption(dir, encrypt)
	if err != nil || path == "" {
		t.Fatalf("the file is %q, %v", path, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, string(text)
}

func TestAPIServerEncryptsSecrets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	path, first := encryption(t, dir, true)
	secrets := transformer(t, path)
	data := encrypted(t, secrets, "text")
	if strings.Contains(string(data), "text") {
		t.Errorf("stored as %q", data)
	}
	if got, stale := decrypted(t, secrets, data); got != "text" || stale {
		t.Errorf("encrypted text: %q, stale %v", got, stale)
	}
	if got, stale := decrypted(t, secrets, []byte("text")); got != "text" || !stale {
		t.Errorf("existing plain text: %q, stale %v", got, stale)
	}
	if _, second := encryption(t, dir, true); second != first {
		t.Errorf("the second call writes %s, the first %s", second, first)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want mode 0600", info, err)
	}
}

func TestEncryptionCanBeDisabledAndEnabled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if path, err := EnsureEncryption(dir, false); path != "" || err != nil {
		t.Errorf("a cluster that never encrypted: got file %q, %v", path, err)
	}
	path, on := encryption(t, dir, true)
	data := encrypted(t, transformer(t, path), "text")
	_, off := encryption(t, dir, false)
	secrets := transformer(t, path)
	if got, stale := decrypted(t, secrets, data); got != "text" || !stale {
		t.Errorf("existing encrypted text: %q, stale %v", got, stale)
	}
	if got := encrypted(t, secrets, "text"); string(got) != "text" || off == on {
		t.Errorf("stored as %q", got)
	}
	if _, second := encryption(t, dir, true); second != on {
		t.Errorf("after encryption is enabled again, the file is\n%s\nwant\n%s", second, on)
	}
}

func TestRotationKeepsOldKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if err := RotateEncryption(dir); err == nil {
		t.Error("RotateEncryption succeeded without a key")
	}
	path, _ := encryption(t, dir, true)
	data := encrypted(t, transformer(t, path), "text")
	if err := RotateEncryption(dir); err != nil {
		t.Fatal(err)
	}
	secrets := transformer(t, path)
	if got, stale := decrypted(t, secrets, data); got != "text" || !stale {
		t.Errorf("with the new key: %q, stale %v", got, stale)
	}
	if second := encrypted(t, secrets, "text"); strings.HasPrefix(string(second), "k8s:enc:secretbox:v1:key1:") {
		t.Errorf("the old key still encrypts: %q", second)
	}
}

// TestFileOfEarlierVersionIsCompleted starts with a file from an earlier version, which encrypted
// only Secrets.
func TestFileOfEarlierVersionIsCompleted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "encryption.yaml")
	const old = `# The key that Secrets are stored with. Keep a copy beside each backup of the store.
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox:
      keys:
      - name: key1
        secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=
  - identity: {}
`
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := encryptionconfig.LoadEncryptionConfig(t.Context(), path, false, "test")
	if err != nil {
		t.Fatal(err)
	}
	data := encrypted(t, before.Transformers[schema.GroupResource{Resource: "secrets"}], "text")
	encryption(t, dir, true)
	if got, stale := decrypted(t, transformer(t, path), data); got != "text" || stale {
		t.Errorf("existing encrypted text: %q, stale %v", got, stale)
	}
}

func TestErrorForDamagedEncryptionFileContainsNoKey(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "encryption.yaml"), []byte("resources: topsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureEncryption(dir, true); err == nil || strings.Contains(err.Error(), "topsecret") || !strings.Contains(err.Error(), dir) {
		t.Errorf("the error is %v", err)
	}
}

// keys returns the names of the keys in the file, in order.
func keys(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := editKeys(dir, func(keys []apiserverv1.Key) []apiserverv1.Key {
		for _, key := range keys {
			names = append(names, key.Name)
		}
		return keys
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestAddedKeyOnlyDecryptsUntilUse(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	path, content := encryption(t, first, true)
	if err := os.WriteFile(encryptionFile(second), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	before := transformer(t, path)
	key := NewEncryptionKey()
	for range 2 { // a repeated call adds no second key
		if err := key.Add(first); err != nil {
			t.Fatal(err)
		}
	}
	if got := keys(t, first); !slices.Equal(got, []string{"key1", "key2"}) {
		t.Errorf("the keys are %q", got)
	}
	added := transformer(t, path)
	if text, _ := decrypted(t, before, encrypted(t, added, "a")); text != "a" {
		t.Error("the key encrypts before Use")
	}
	if err := key.Use(first); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, first); !slices.Equal(got, []string{"key2", "key1"}) {
		t.Errorf("the keys are %q", got)
	}
	if text, _ := decrypted(t, added, encrypted(t, transformer(t, path), "a")); text != "a" {
		t.Error("a master with the added key cannot decrypt")
	}

	// Replacing the file with another master's file removes no key.
	if err := RotateEncryption(second); err != nil {
		t.Fatal(err)
	}
	own := encrypted(t, transformer(t, encryptionFile(second)), "b")
	content2, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := ReplaceEncryption(second, content2); err != nil {
		t.Fatal(err)
	}
	merged := transformer(t, encryptionFile(second))
	if text, _ := decrypted(t, merged, own); text != "b" || len(keys(t, second)) != 3 {
		t.Errorf("a key is lost: %q", keys(t, second))
	}
	if text, stale := decrypted(t, transformer(t, path), encrypted(t, merged, "c")); text != "c" || stale {
		t.Error("the masters encrypt with different keys")
	}
}

func TestSealedFileCanOnlyBeOpenedWithSameAuthority(t *testing.T) {
	dirs := map[string]string{"own": t.TempDir(), "other": t.TempDir()}
	for name, dir := range dirs {
		if err := os.WriteFile(FilesIn(dir).CA.Key, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sealed, err := Seal(dirs["own"], []byte("content"))
	if err != nil || bytes.Contains(sealed, []byte("content")) {
		t.Fatalf("%q, %v", sealed, err)
	}
	if content, err := Open(dirs["own"], sealed); err != nil || string(content) != "content" {
		t.Errorf("%q, %v", content, err)
	}
	for name, data := range map[string][]byte{"changed": append(slices.Clone(sealed[:len(sealed)-1]), sealed[len(sealed)-1]^1), "cut": sealed[:5]} {
		if _, err := Open(dirs["own"], data); err == nil {
			t.Errorf("Open accepted a file that is %s", name)
		}
	}
	if _, err := Open(dirs["other"], sealed); err == nil {
		t.Error("Open accepted a file of another cluster")
	}
}
