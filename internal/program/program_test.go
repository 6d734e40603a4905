package program

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFindSearchesPathForExecutables(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", filepath.Join(dir, "missing")+":"+dir)
	for name, mode := range map[string]os.FileMode{"tool": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if path, ok := Find("tool"); !ok || path != filepath.Join(dir, "tool") {
		t.Errorf("got %q, %v", path, ok)
	}
	for _, name := range []string{"text", "absent-program"} {
		if path, ok := Find(name); ok {
			t.Errorf("%s: got %q", name, path)
		}
	}
}
