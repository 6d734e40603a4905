package node

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDirectoryOfStaticPodsIsCreatedIfMissing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pod.yaml")
	if err := os.WriteFile(file, []byte("kind: Pod\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		wantErr    bool
	}{
		{"no static pods", "", false},
		{"missing directory", filepath.Join(dir, "node", "pods"), false},
		{"existing directory", dir, false},
		{"file with one pod", file, false},
		{"directory below a file", filepath.Join(file, "pods"), false},
		{"missing directory that cannot be created", "/proc/self/pods", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := ensureManifests(tt.path); (err != nil) != tt.wantErr {
				t.Fatalf("got error %v, want an error: %t", err, tt.wantErr)
			}
		})
	}
	info, err := os.Stat(filepath.Join(dir, "node", "pods"))
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		t.Errorf("the missing directory is %v, %v", info, err)
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "kind: Pod\n" {
		t.Errorf("the file contains %q, %v", content, err)
	}
}
