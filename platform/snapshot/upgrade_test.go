package snapshot

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestDatabaseIsSavedBeforeUpgrade(t *testing.T) {
	database, dir := filepath.Join(t.TempDir(), "db"), filepath.Join(t.TempDir(), "snapshots")
	if path, err := BeforeUpgrade(t.Context(), database, dir, "v1.36.4"); path != "" || err != nil {
		t.Fatalf("without a database: %q, %v", path, err)
	}
	write := func(content byte) {
		t.Helper()
		if err := os.WriteFile(database, bytes.Repeat([]byte{content}, 4096), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	path, err := BeforeUpgrade(t.Context(), database, dir, "v1.36.4")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Check(path); err != nil {
		t.Error(err)
	}
	write(2) // simulate a new program that was killed before it was ready
	if again, err := BeforeUpgrade(t.Context(), database, dir, "v1.36.4"); again != path || err != nil {
		t.Errorf("another start: %q, %v", again, err)
	}
	if content, err := os.ReadFile(path); err != nil || content[0] != 1 {
		t.Errorf("the copy was replaced: %v", err)
	}
	if files, err := List(dir); err != nil || len(files) != 0 {
		t.Errorf("the schedule would remove the copy: %v, %v", files, err)
	}
	next, err := BeforeUpgrade(t.Context(), database, dir, "v1.37.0")
	if err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); got != filepath.Base(next) {
		t.Errorf("after the next upgrade, the directory contains %s", got)
	}
}
