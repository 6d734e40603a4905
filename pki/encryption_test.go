package pki

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
)

// TestAPIServerReadsEncryption encrypts and decrypts through upstream's reader of the file.
func TestAPIServerReadsEncryption(t *testing.T) {
	path, err := EnsureEncryption(filepath.Join(t.TempDir(), "pki"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := encryptionconfig.LoadEncryptionConfig(t.Context(), path, false, "test")
	if err != nil {
		t.Fatal(err)
	}
	secrets := config.Transformers[schema.GroupResource{Resource: "secrets"}]
	if secrets == nil || len(config.Transformers) != 1 {
		t.Fatalf("encrypted are %v, want secrets alone", config.Transformers)
	}
	name := value.DefaultContext("/registry/secrets/default/a")
	stored, err := secrets.TransformToStorage(t.Context(), []byte("text"), name)
	if err != nil || string(stored) == "text" {
		t.Errorf("stored as %q, %v, want it encrypted", stored, err)
	}
	for _, old := range [][]byte{stored, []byte("text")} {
		read, _, err := secrets.TransformFromStorage(t.Context(), old, name)
		if err != nil || string(read) != "text" {
			t.Errorf("read %q as %q, %v", old, read, err)
		}
	}
}
