// Package containerdtest starts a real containerd in temporary directories for a test.
package containerdtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/payload"
	"github.com/slipway-platform/slipway/node/containerd"
)

// New returns a Runtime that uses the embedded programs, and directories that belong only to this
// test. The Runtime is not started. When the test ends, New's cleanup unmounts everything in the
// directories and removes them.
func New(t testing.TB) (containerd.Runtime, payload.Programs) {
	t.Helper()
	// t.TempDir cannot be used, because its paths are too long for a Unix socket address.
	dir, err := os.MkdirTemp("", "slipway-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unmountBelow(t, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	programs, err := payload.Unpack(filepath.Join(dir, "bin"))
	if errors.Is(err, payload.ErrNotEmbedded) {
		t.Fatalf("%v: run make build first", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return containerd.Runtime{
		Program:           programs.Containerd,
		Shim:              programs.Shim,
		Runc:              programs.Runc,
		Root:              filepath.Join(dir, "root"),
		State:             filepath.Join(dir, "run", "containerd"),
		Socket:            filepath.Join(dir, "run", "containerd.sock"),
		CNIConfDir:        filepath.Join(dir, "cni", "conf"),
		CNIBinDirs:        []string{programs.Dir},
		RegistryConfigDir: filepath.Join(dir, "registries.d"),
		SandboxImage:      "localhost/slipway-pause:current",
	}, programs
}

// Daemon is a containerd process that a test uses.
type Daemon struct {
	runtime containerd.Runtime
	command *exec.Cmd
	cancel  context.CancelFunc
	log     bytes.Buffer
}

// Start starts r and waits until it is ready. It is stopped when the test ends, after cleanups that
// the test registers later. Its log is printed if the test has failed.
func Start(t testing.TB, r containerd.Runtime) *Daemon {
	t.Helper()
	d := &Daemon{runtime: r}
	t.Cleanup(func() {
		d.Stop(t)
		if t.Failed() {
			t.Logf("containerd:\n%s", &d.log)
		}
	})
	d.start(t)
	return d
}

// Restart stops the daemon and starts it again.
func (d *Daemon) Restart(t testing.TB) {
	t.Helper()
	d.Stop(t)
	d.start(t)
}

// Stop stops the daemon if it is running.
func (d *Daemon) Stop(t testing.TB) {
	t.Helper()
	if d.command == nil {
		return
	}
	d.cancel()
	if err := d.command.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("stop containerd: %v", err)
	}
	d.command = nil
}

func (d *Daemon) start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	command, err := d.runtime.Command(ctx)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = &d.log, &d.log
	if err := command.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	d.command, d.cancel = command, cancel
	ready, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	if err := d.runtime.WaitReady(ready); err != nil {
		t.Fatal(err)
	}
}

func unmountBelow(t testing.TB, dir string) {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		t.Error(err)
	}
	for i := len(mounts) - 1; i >= 0; i-- {
		if err := unix.Unmount(mounts[i].Mountpoint, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %q: %v", mounts[i].Mountpoint, err)
		}
	}
}
