package atomicfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// writeTo is an environment variable that makes the test binary write to a file until it is killed.
const writeTo = "ATOMICFILE_TEST_WRITE_TO"

func TestMain(m *testing.M) {
	if path := os.Getenv(writeTo); path != "" {
		for n := byte(0); ; n++ {
			if err := Write(path, contentOf(n), 0o600); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

// contentOf returns content that is large enough for a kill to interrupt a write, and that shows
// whether a write is complete.
func contentOf(n byte) []byte { return bytes.Repeat([]byte{n}, 1<<20) }

func TestFileHasContentAndMode(t *testing.T) {
	umask := syscall.Umask(0o077)
	defer syscall.Umask(umask)
	path := filepath.Join(t.TempDir(), "file")
	steps := []struct {
		name    string
		before  func()
		content string
		mode    fs.FileMode
	}{
		{"a new file", func() {}, "one", 0o644},
		{"a shorter content and another mode", func() {}, "2", 0o600},
		{"an empty content", func() {}, "", 0o600},
		{"after a process that was killed", func() { leaveBehind(t, path) }, "four", 0o600},
	}
	for _, step := range steps {
		step.before()
		if err := Write(path, []byte(step.content), step.mode); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		content, err := os.ReadFile(path)
		if err != nil || string(content) != step.content {
			t.Errorf("%s: content is %q, %v", step.name, content, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != step.mode {
			t.Errorf("%s: mode is %v, %v, want %v", step.name, info.Mode(), err, step.mode)
		}
		if names := list(t, filepath.Dir(path)); names != "file" {
			t.Errorf("%s: directory contains %q", step.name, names)
		}
	}
}

// leaveBehind writes the temporary file of an earlier, killed write. The file is longer than the
// new content, and every user can read it.
func leaveBehind(t *testing.T, path string) {
	t.Helper()
	draft := filepath.Join(filepath.Dir(path), ".file.new")
	if err := os.WriteFile(draft, []byte("a long draft"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(draft, 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestOpenFileKeepsOldContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := Write(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 3)
	if _, err := reader.Read(content); err != nil || string(content) != "old" {
		t.Errorf("the open file contains %q, %v", content, err)
	}
}

func TestPathWithoutDirectoryUsesWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := Write("file", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if names := list(t, "."); names != "file" {
		t.Errorf("directory contains %q", names)
	}
}

func TestFailureKeepsOldFile(t *testing.T) {
	tests := []struct {
		name string
		path func(t *testing.T, dir string) string
		want error
	}{
		{"no folder", func(_ *testing.T, dir string) string { return filepath.Join(dir, "gone", "file") }, fs.ErrNotExist},
		{"a folder in the way", func(_ *testing.T, dir string) string { return filepath.Join(dir, "folder") }, fs.ErrExist},
		{"a full disk", func(t *testing.T, dir string) string { return filepath.Join(full(t, dir), "file") }, unix.ENOSPC},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "folder", "below"), 0o700); err != nil {
				t.Fatal(err)
			}
			path := tt.path(t, dir)
			err := Write(path, contentOf(1), 0o600)
			if !errors.Is(err, tt.want) || !strings.HasPrefix(err.Error(), "write \""+path+"\": ") {
				t.Errorf("error is %v, want %v of %s", err, tt.want, path)
			}
			if leftover, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.new")); len(leftover) > 0 {
				t.Errorf("left behind: %v", leftover)
			}
		})
	}
}

// full mounts a file system of 64 KiB, which a test can fill, and returns its directory.
func full(t *testing.T, dir string) string {
	t.Helper()
	small := filepath.Join(dir, "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("mount a small file system (tests run as root): %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	})
	return small
}

// TestKilledEnsureCanBeRepeated kills a process during a write, and then reads the file.
func TestKilledEnsureCanBeRepeated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, contentOf(0), 0o600); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), writeTo+"="+path)
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- child.Wait() }()
		select {
		case err := <-done:
			t.Fatalf("the process failed after an earlier kill: %v", err)
		case <-time.After(time.Duration(10+3*n) * time.Millisecond):
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-done
		content, err := os.ReadFile(path)
		if err != nil || len(content) != 1<<20 || !bytes.Equal(content, contentOf(content[0])) {
			t.Fatalf("run %d: %d bytes, %v: not the content of a single write", n, len(content), err)
		}
	}
	if names := list(t, filepath.Dir(path)); names != "file" && names != ".file.new file" {
		t.Errorf("directory contains %q, want at most one draft", names)
	}
}

func TestSyncOfMissingDirectoryFails(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "gone")
	if err := SyncFolder(missing); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("error is %v", err)
	}
}

func list(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}
