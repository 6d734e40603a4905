package containerd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// stateWith returns a state directory that contains a file and, unless boot is empty, the boot ID.
func stateWith(t *testing.T, boot string) (dir, file string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	file = filepath.Join(dir, "tasks", "1", "pid")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("4711"), 0o600); err != nil {
		t.Fatal(err)
	}
	if boot != "" {
		if err := os.WriteFile(filepath.Join(dir, bootFile), []byte(boot), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, file
}

func TestStateOfThisBootIsKept(t *testing.T) {
	current, err := bootID("/proc")
	if err != nil {
		t.Fatal(err)
	}
	dir, file := stateWith(t, current)
	if err := cleanState(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestStateOfAnotherBootIsRemoved(t *testing.T) {
	for name, boot := range map[string]string{"other boot": "0f0e 123\n", "unknown boot": ""} {
		dir, file := stateWith(t, boot)
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

func TestBootIDChangesWhenContainerRestarts(t *testing.T) {
	identity := func(startTime string) string {
		proc := t.TempDir()
		for path, content := range map[string]string{
			"sys/kernel/random/boot_id": "0f0e\n",
			"1/stat":                    "1 (an (odd) name) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 " + startTime + " 22 23",
		} {
			path = filepath.Join(proc, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := bootID(proc)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got, want := identity("777"), "0f0e 777\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
