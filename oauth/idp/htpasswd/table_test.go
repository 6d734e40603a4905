package htpasswd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFileIsReadAgainOnlyAfterChange(t *testing.T) {
	path := write(t, "alice:{SHA}one\n")
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	var c cache
	loadTime := func() time.Time {
		t.Helper()
		if _, err := c.read(path); err != nil {
			t.Fatal(err)
		}
		return c.loadTime
	}
	first := loadTime()
	if !loadTime().Equal(first) {
		t.Error("the file is read twice")
	}
	// Write the file again shortly after it was created, with the same inode and size.
	if err := os.WriteFile(path, []byte("alice:{SHA}two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := c.read(path); err != nil || got.hash("alice") != "{SHA}two" {
		t.Errorf("after a change: %q, %v", got.hash("alice"), err)
	}
	if err := os.WriteFile(path, []byte("alice:{SHA}six\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := c.read(path); err != nil || got.hash("alice") != "{SHA}six" {
		t.Errorf("after another change: %q, %v", got.hash("alice"), err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, err := c.read(path); err == nil || len(got.entries) > 0 {
		t.Errorf("without the file: %v, %v", got, err)
	}
}

func TestFileSizeIsLimited(t *testing.T) {
	var lines strings.Builder
	for i := range maxUsers {
		fmt.Fprintf(&lines, "u%d:\n", i)
	}
	names, err := List(write(t, lines.String()))
	if len(names) != maxUsers || err != nil {
		t.Errorf("%d users, %v", len(names), err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		write(t, lines.String()+"one-more:\n"):    "more than 200000 users",
		write(t, strings.Repeat("#", maxBytes+1)): "more than 16777216 bytes",
		pipe:                                  "not a regular file",
		filepath.Join(t.TempDir(), "missing"): "no such file",
	} {
		if _, err := New(path).AuthenticatePassword(t.Context(), "alice", "secret"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
