package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConvertEncryptionConfigKeepsFields(t *testing.T) {
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	text := "kind: EncryptionConfig\napiVersion: v1\nresources:\n- resources: [secrets]\n  providers: [{identity: {}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := convertEncryptionConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"apiVersion: apiserver.config.k8s.io/v1\n", "kind: EncryptionConfiguration\n", "- secrets\n", "identity: {}"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

func TestConvertEncryptionConfigShowsNoKeyInErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	if err := os.WriteFile(path, []byte("resources: {secret: SECRETKEY\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := convertEncryptionConfig(path); err == nil || strings.Contains(err.Error(), "SECRETKEY") {
		t.Errorf("got error %v", err)
	}
}
