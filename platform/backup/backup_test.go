package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// write creates a file and its parent directories.
func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// save writes an archive of a host that has files inside and outside its data directory.
func save(t *testing.T) (archive, dataDir, outside string) {
	t.Helper()
	dataDir, outside = t.TempDir(), filepath.Join(t.TempDir(), "users")
	write(t, filepath.Join(dataDir, "pki", "ca.key"), "key", 0o600)
	write(t, filepath.Join(dataDir, "pki", "ca.crt"), "certificate", 0o644)
	write(t, outside, "alice", 0o640)
	snapshot := filepath.Join(t.TempDir(), "snapshot")
	write(t, snapshot, "objects", 0o600)
	if err := os.Symlink("ca.crt", filepath.Join(dataDir, "pki", "current")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(dataDir, "pki", "ca.key"), 12, 34); err != nil && os.Geteuid() == 0 {
		t.Fatal(err)
	}
	archive = filepath.Join(t.TempDir(), "backup.tar.gz")
	sources := []string{filepath.Join(dataDir, "pki"), outside, filepath.Join(dataDir, "pki", "ca.key"), filepath.Join(dataDir, "none")}
	err := Write(archive, Manifest{Node: "first", Created: time.Now(), Snapshot: "restore.db"}, dataDir, sources,
		map[string]string{filepath.Join(dataDir, "restore.db"): snapshot})
	if err != nil {
		t.Fatal(err)
	}
	return archive, dataDir, outside
}

func TestRestoredFilesHaveContentOwnerAndMode(t *testing.T) {
	archive, _, outside := save(t)
	if info, err := os.Stat(archive); err != nil || info.Mode() != 0o600 {
		t.Errorf("the archive is %v, %v", info, err)
	}
	if err := os.Remove(outside); err != nil {
		t.Fatal(err)
	}
	manifest, err := Read(archive)
	if err != nil || manifest.Node != "first" {
		t.Fatalf("the manifest is %+v, %v", manifest, err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	if err := Restore(archive, dir, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		content string
		mode    os.FileMode
	}{
		filepath.Join(dir, "pki", "ca.key"):  {"key", 0o600},
		filepath.Join(dir, "pki", "current"): {"certificate", 0o644},
		filepath.Join(dir, "restore.db"):     {"objects", 0o600},
		outside:                              {"alice", 0o640},
	} {
		content, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(content) != want.content || info.Mode() != want.mode {
			t.Errorf("%s contains %q with %v, %v", path, content, info, errors.Join(err, statErr))
		}
	}
	info, err := os.Stat(filepath.Join(dir, "pki", "ca.key"))
	if owner, ok := info.Sys().(*syscall.Stat_t); err != nil || os.Geteuid() == 0 && (!ok || owner.Uid != 12 || owner.Gid != 34) {
		t.Errorf("the owner is %+v, %v", owner, err)
	}
	if Interrupted(dir) {
		t.Error("Interrupted returns true after a complete restore")
	}
}

func TestInterruptedRestoreCanBeRepeated(t *testing.T) {
	archive, _, _ := save(t)
	dir := t.TempDir()
	cause := errors.New("killed")
	if err := Restore(archive, dir, func() error { return cause }); !errors.Is(err, cause) || !Interrupted(dir) {
		t.Errorf("got %v, interrupted is %v", err, Interrupted(dir))
	}
	if err := Restore(archive, dir, func() error { return nil }); err != nil || Interrupted(dir) {
		t.Errorf("got %v, interrupted is %v", err, Interrupted(dir))
	}
}

func TestDamagedArchiveIsRejected(t *testing.T) {
	archive, _, outside := save(t)
	content, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(t.TempDir(), "part")
	write(t, part, string(content[:len(content)-20]), 0o600)
	if _, err := Read(part); err == nil {
		t.Error("a truncated archive is accepted")
	}
	write(t, outside, "bob", 0o640)
	if _, err := Read(archive); err == nil || !strings.Contains(err.Error(), outside) {
		t.Errorf("a file with different content is accepted: %v", err)
	}
	for _, name := range []string{"data/../etc/passwd", "files/../../x", "other"} {
		if _, err := target("/data", name); err == nil {
			t.Errorf("the entry %q is accepted", name)
		}
	}
}

func TestRestoreNeedsEmptyHost(t *testing.T) {
	for name, tt := range map[string]struct {
		files []string
		empty bool
	}{
		"no file":             {nil, true},
		"configuration":       {[]string{"master/master-config.yaml", "node/node-config.yaml"}, true},
		"certificates":        {[]string{"pki/ca.crt"}, false},
		"etcd data":           {[]string{"etcd/member"}, false},
		"joined host":         {[]string{"node/membership.json"}, false},
		"interrupted restore": {[]string{"pki/ca.crt", "restoring"}, true},
	} {
		dir := t.TempDir()
		for _, file := range tt.files {
			write(t, filepath.Join(dir, file), "", 0o600)
		}
		if err := CheckEmpty(dir); err == nil != tt.empty || err != nil && !strings.Contains(err.Error(), "slipway down --purge") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
