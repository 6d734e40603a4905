package node

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/certtest"
)

func TestKubeletAcceptsAdditionalAuthorities(t *testing.T) {
	own, further, bundle := certtest.New(t).File, certtest.New(t).File, filepath.Join(t.TempDir(), "bundle.crt")
	if path, err := ClientCAFile(own, "", bundle); err != nil || path != own {
		t.Errorf("without the setting, the file is %q, %v", path, err)
	}
	path, err := ClientCAFile(own, further, bundle)
	if err != nil || path != bundle {
		t.Fatalf("the file is %q, %v", path, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{own, further} {
		authority, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(content, authority) {
			t.Errorf("the bundle lacks %s: %v", file, err)
		}
	}
}

func TestClientCAFileWithoutCertificateIsRejected(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.crt")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{empty: "correct servingInfo.clientCA", filepath.Join(dir, "none.crt"): "no such file"} {
		if _, err := ClientCAFile(certtest.New(t).File, file, filepath.Join(dir, "bundle.crt")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
