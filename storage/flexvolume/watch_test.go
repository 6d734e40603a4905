package flexvolume

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// quiet is a driver that does not write to its directory.
const quiet = "#!/bin/sh\necho '{\"status\":\"Success\",\"capabilities\":{\"attach\":false}}'\n"

// scanCounter counts scans and failed scans.
type scanCounter struct {
	noopObserver
	mu          sync.Mutex
	all, errors int
}

func (c *scanCounter) ScanEnds(scan Scan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all++
	if scan.Err != nil {
		c.errors++
	}
}

func (c *scanCounter) counts() (scans, failed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all, c.errors
}

// idle reports whether Run is waiting for a change.
func (r *Registry) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries != nil && r.next.IsZero()
}

func TestDirectoryIsReadOnChangeOnly(t *testing.T) {
	t.Parallel()
	dir, count := t.TempDir(), &scanCounter{}
	write(t, executable(dir, "x/y"), quiet)
	r := &Registry{Dir: dir, Observer: count}
	componenttest.Run(t, r.Run)
	eventually.True(t, "idle", r.idle)
	previous, _ := count.counts()
	generation := r.Generation()
	for range 10_000 {
		r.List()
		if _, err := r.Ready(context.Background(), "x/y"); err != nil {
			t.Fatal(err)
		}
		if _, ok := r.Lookup("x/absent"); ok {
			t.Fatal("the driver exists")
		}
	}
	if after, _ := count.counts(); after != previous || r.Generation() != generation || !r.idle() {
		t.Errorf("%d scans although nothing changed, generation %d after %d", after-previous, r.Generation(), generation)
	}
	write(t, executable(dir, "x/z"), quiet)
	eventually.True(t, "the change is detected", hasState(r, "x/z", StateReady))
	if after, _ := count.counts(); after == previous {
		t.Error("a change was detected without a scan")
	}
}

func TestUnchangedDriversCauseNoScans(t *testing.T) {
	t.Parallel()
	dir, count := t.TempDir(), &scanCounter{}
	for n := range 500 {
		write(t, executable(dir, fmt.Sprintf("example.com/driver%d", n)), quiet)
	}
	r := &Registry{Dir: dir, Observer: count}
	componenttest.Run(t, r.Run)
	eventually.True(t, "all are ready", func() bool {
		ready := 0
		for _, e := range r.List() {
			if e.State == StateReady {
				ready++
			}
		}
		return ready == 500
	})
	// No scan, init or timer is pending.
	eventually.True(t, "idle", r.idle)
	if scans, failed := count.counts(); scans != 1 || failed != 0 {
		t.Errorf("%d scans, %d failed; want one scan", scans, failed)
	}
}

func TestFailedScanKeepsDrivers(t *testing.T) {
	t.Parallel()
	dir, count := filepath.Join(t.TempDir(), "exec"), &scanCounter{}
	write(t, executable(dir, "x/y"), quiet)
	r := &Registry{Dir: dir, Observer: count}
	componenttest.Run(t, r.Run)
	// Atomically replace the directory with a file.
	file := filepath.Join(filepath.Dir(dir), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	exchange := func() {
		t.Helper()
		if err := unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE); err != nil {
			t.Fatal(err)
		}
	}
	exchange()
	eventually.True(t, "a scan fails", func() bool { _, failed := count.counts(); return failed > 0 })
	if driver, err := r.Ready(context.Background(), "x/y"); err != nil || driver.Name() != "x/y" {
		t.Errorf("after a failed scan: %v", err)
	}
	exchange()
	write(t, executable(dir, "x/z"), quiet)
	eventually.True(t, "the directory is read again", hasState(r, "x/z", StateReady))
	if e, _ := r.Lookup("x/y"); e.State != StateReady {
		t.Errorf("the first driver is %s", e.State)
	}
}

func TestLaterDirectoryIsWatched(t *testing.T) {
	t.Parallel()
	dir, count := t.TempDir(), &scanCounter{}
	r := &Registry{Dir: dir, Observer: count}
	componenttest.Run(t, r.Run)
	path := executable(dir, "x/y")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the empty directory is detected", hasState(r, "x/y", StateFailed))
	eventually.True(t, "idle", r.idle)
	write(t, path, quiet)
	eventually.True(t, "its driver", hasState(r, "x/y", StateReady))
}

func TestLinkedDriverDirectoryIsFollowed(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "real")
	write(t, filepath.Join(elsewhere, "y"), quiet)
	r := &Registry{Dir: dir}
	componenttest.Run(t, r.Run)
	if err := os.Symlink(elsewhere, filepath.Join(dir, "x~y")); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the driver is found through the link", hasState(r, "x/y", StateReady))
	first, _ := r.Lookup("x/y")
	write(t, filepath.Join(elsewhere, "y"), quiet+"# second\n")
	eventually.True(t, "the driver behind the link is updated", func() bool {
		e, _ := r.Lookup("x/y")
		return e.State == StateReady && e.Version != first.Version
	})
	if err := os.Remove(filepath.Join(dir, "x~y")); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the driver is removed with the link", hasState(r, "x/y", StateRemoved))
}

// The design for dynamic discovery warns about links to directories outside the plugin directory.
// Such a link is followed only if it is a driver's directory.
func TestLinkToOtherDirectoryIsNotWatched(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	path := executable(dir, "x/y")
	write(t, path, quiet)
	if err := os.Symlink(elsewhere, filepath.Join(filepath.Dir(path), "data")); err != nil {
		t.Fatal(err)
	}
	w := newWatch()
	defer w.close()
	if _, err := w.scan(dir); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{dir: true, filepath.Dir(path): true}
	for _, watched := range w.watcher.WatchList() {
		if !want[watched] {
			t.Errorf("%s is watched", watched)
		}
		delete(want, watched)
	}
	if len(want) > 0 {
		t.Errorf("not watched: %v", want)
	}
}

// A driver's executable can be a symbolic link, as in some distribution packages. The test also
// replaces the link with another link.
func TestLinkedExecutableIsADriver(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, version := range []string{"one", "two"} {
		write(t, filepath.Join(elsewhere, version), quiet+"# "+version+"\n")
	}
	path := executable(dir, "x/y")
	link := func(version string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		partial := filepath.Join(filepath.Dir(path), ".new")
		if err := os.Symlink(filepath.Join(elsewhere, version), partial); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(partial, path); err != nil {
			t.Fatal(err)
		}
	}
	link("one")
	r := &Registry{Dir: dir}
	componenttest.Run(t, r.Run)
	first, _ := r.Lookup("x/y")
	if first.State != StateReady {
		t.Fatalf("entry %+v", first)
	}
	link("two")
	eventually.True(t, "the other version", func() bool {
		e, _ := r.Lookup("x/y")
		return e.State == StateReady && e.Version != first.Version
	})
}

// The kernel drops changes and reports an overflow if its queue is full.
func TestWatchOverflowCausesScan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := executable(dir, "x/y")
	write(t, path, quiet)
	r := &Registry{Dir: dir}
	componenttest.Run(t, r.Run)
	eventually.True(t, "idle", r.idle)
	first, _ := r.Lookup("x/y")
	// Stop watching the directory, so that the change to the driver is lost.
	watcher := r.watch.watcher
	if err := watcher.Remove(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	write(t, path, quiet+"# second\n")
	watcher.Errors <- fsnotify.ErrEventOverflow
	eventually.True(t, "the lost change is found", func() bool {
		e, _ := r.Lookup("x/y")
		return e.State == StateReady && e.Version != first.Version
	})
}

func TestNewVersionIsCalledForUnsupportedOperations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := executable(dir, "x/y")
	write(t, path, "#!/bin/sh\n[ $1 = init ] && exec echo '{\"status\":\"Success\"}'\necho '{\"status\":\"Not supported\"}'\n")
	r := &Registry{Dir: dir}
	componenttest.Run(t, r.Run)
	old, err := r.Ready(context.Background(), "x/y")
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Unmount(context.Background(), "/m"); err == nil || !old.Unsupported(OpUnmount) {
		t.Fatalf("unmount: %v", err)
	}
	write(t, path, quiet)
	eventually.True(t, "the new version supports the operation", func() bool {
		driver, err := r.Ready(context.Background(), "x/y")
		return err == nil && driver.Version() != old.Version() && driver.Unmount(context.Background(), "/m") == nil
	})
}

func TestInitRetriesBackOff(t *testing.T) {
	t.Parallel()
	for failures, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		if got := backoff(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
	if got := backoff(1000); got != maxBackoff {
		t.Errorf("after 1000 failures: %s, want %s", got, maxBackoff)
	}
	r := &Registry{}
	e := r.newEntry("x/y")
	for want := 1; want <= 3; want++ {
		r.finishInit(initResult{name: "x/y", attempt: e.attempt, err: os.ErrInvalid})
		if e.failureCount != want || e.Retry.IsZero() {
			t.Errorf("%d failures are counted, want %d; next retry %s", e.failureCount, want, e.Retry)
		}
	}
}
