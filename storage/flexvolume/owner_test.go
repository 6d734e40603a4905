package flexvolume

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// stranger is the UID of a non-root user.
const stranger = 12345

func TestDriverThatOtherUsersCanReplaceDoesNotRun(t *testing.T) {
	for name, spoil := range map[string]func(vendor, path string) error{
		"its owner":              func(_, path string) error { return os.Chown(path, stranger, 0) },
		"its group":              func(_, path string) error { return os.Chmod(path, 0o775) },
		"all users":              func(_, path string) error { return os.Chmod(path, 0o757) },
		"owner of its directory": func(vendor, _ string) error { return os.Chown(vendor, stranger, 0) },
		"group of its directory": func(vendor, _ string) error { return os.Chmod(vendor, 0o775) },
		"owner of the plugin directory": func(vendor, _ string) error {
			return os.Chown(filepath.Dir(vendor), stranger, 0)
		},
		"all users, above the plugin directory": func(vendor, _ string) error {
			return os.Chmod(filepath.Dir(filepath.Dir(vendor)), 0o777)
		},
		"owner of a link to it": func(_, path string) error {
			aside := path + ".real"
			return errors.Join(os.Rename(path, aside), os.Symlink(aside, path), os.Lchown(path, stranger, 0))
		},
		"all users, at the end of a link": func(_, path string) error {
			dir := filepath.Join(filepath.Dir(path), "open")
			return errors.Join(os.Mkdir(dir, 0o755), os.Rename(path, filepath.Join(dir, "driver")),
				os.Symlink("open/driver", path), os.Chmod(dir, 0o777))
		},
	} {
		t.Run(name, func(t *testing.T) {
			plugins := filepath.Join(t.TempDir(), "above", "plugins")
			path := executable(plugins, "example.com/test")
			write(t, path, "#!/bin/sh\ntouch "+path+".ran\necho '{\"status\":\"Success\"}'\n")
			driver := NewDriver("example.com/test", path, Settings{}) // as created by an earlier scan
			if err := spoil(filepath.Dir(path), path); err != nil {
				t.Fatal(err)
			}
			if _, err := driver.Init(t.Context()); KindOf(err) != KindStart || !strings.Contains(err.Error(), "only root") {
				t.Errorf("a call of the driver: %v", err)
			}
			if _, err := Find(plugins, "example.com/test"); !errors.Is(err, errUntrusted) || !strings.Contains(err.Error(), "; run ch") {
				t.Errorf("the scan finds %v, want an error with the remedy", err)
			}
			if _, err := os.Stat(path + ".ran"); err == nil {
				t.Error("the driver ran")
			}
		})
	}
}

func TestDriverBehindSafeLinksRuns(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "opt", "vendor", "bin", "driver")
	write(t, real, successScript)
	if err := os.Symlink("opt/vendor", filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	path := executable(filepath.Join(dir, "plugins"), "example.com/test")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "opt", "..", "current", "bin", "driver"), path); err != nil {
		t.Fatal(err)
	}
	if _, err := NewDriver("example.com/test", path, Settings{}).Init(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := Find(filepath.Join(dir, "plugins"), "example.com/test"); err != nil {
		t.Error(err)
	}
}

func TestLinkToItselfIsRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "driver")
	if err := os.Symlink("driver", path); err != nil {
		t.Fatal(err)
	}
	if err := checkOwner(path); err == nil {
		t.Error("a link to itself is accepted")
	}
}

// TestDriverRunsAfterItsDirectoryIsClosed checks that a driver becomes ready after write access to
// a parent of the plugin directory, which is not watched, has been removed.
func TestDriverRunsAfterItsDirectoryIsClosed(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	registry := &Registry{Dir: filepath.Join(above, "plugins"), KeepDir: t.TempDir()}
	write(t, executable(registry.Dir, "x/y"), successScript)
	if err := os.Chmod(above, 0o777); err != nil {
		t.Fatal(err)
	}
	componenttest.Run(t, registry.Run)
	eventually.True(t, "failed", hasState(registry, "x/y", StateFailed))
	if err := os.Chmod(above, 0o755); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "ready", hasState(registry, "x/y", StateReady))
}
