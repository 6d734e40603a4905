package containerd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/boot"
)

// stateWith returns a state directory that contains a file and, unless record is empty, a record of
// a boot.
func stateWith(t *testing.T, record string) (dir, file string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	file = filepath.Join(dir, "tasks", "1", "pid")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("4711"), 0o600); err != nil {
		t.Fatal(err)
	}
	if record != "" {
		if err := os.WriteFile(filepath.Join(dir, bootFile), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, file
}

func TestStateOfThisBootIsKept(t *testing.T) {
	current, err := boot.ID("/proc")
	if err != nil {
		t.Fatal(err)
	}
	dir, file := stateWith(t, current+"\n")
	if err := cleanState(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestStateOfAnotherBootIsRemoved(t *testing.T) {
	for name, record := range map[string]string{"other boot": "0f0e 123\n", "unknown boot": ""} {
		dir, file := stateWith(t, record)
		if err := cleanState(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the state still exists (%v)", name, err)
		}
		if err := cleanState(dir); err != nil {
			t.Error(err)
		}
	}
}

func TestMountedStateIsNeverRemoved(t *testing.T) {
	dir, file := stateWith(t, "")
	if err := unix.Mount("tmpfs", filepath.Dir(file), "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(filepath.Dir(file), unix.MNT_DETACH) })
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := cleanState(dir)
	if err == nil || !strings.Contains(err.Error(), "slipway down") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
