package flexvolume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

const loggingScript = "#!/bin/sh\necho \"$1\" >>\"$0.log\"\necho '{\"status\":\"Success\",\"capabilities\":{\"attach\":false}}'\n"

func hasState(r *Registry, driver string, state State) func() bool {
	return func() bool {
		e, _ := r.Lookup(driver)
		return e.State == state
	}
}

func TestDriversAreFoundAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, executable(dir, "example.com/one"), loggingScript)
	write(t, executable(dir, "plain"), loggingScript)
	write(t, filepath.Join(dir, ".hidden", ".hidden"), loggingScript)
	write(t, filepath.Join(dir, "a~b~c", "c"), loggingScript)
	write(t, filepath.Join(dir, "wrong~name", "other"), loggingScript)
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "real")
	write(t, filepath.Join(elsewhere, "linked"), loggingScript)
	if err := os.Symlink(elsewhere, filepath.Join(dir, "example.com~linked")); err != nil {
		t.Fatal(err)
	}
	r := &Registry{Dir: dir}
	componenttest.Run(t, r.Run)
	got := map[string]State{}
	for _, e := range r.List() {
		got[e.Name] = e.State
	}
	want := map[string]State{
		"example.com/one": StateReady, "plain": StateReady, "example.com/linked": StateReady, "a/b/c": StateFailed, "wrong/name": StateFailed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("drivers (-want +got):\n%s", diff)
	}
	driver, err := r.Ready(context.Background(), "example.com/one")
	if err != nil {
		t.Fatal(err)
	}
	if driver.Capabilities().Attach || !driver.Capabilities().FSGroup {
		t.Errorf("capabilities %+v", driver.Capabilities())
	}
}

func TestInstallUpdateRemoveWithoutRestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "missing", "exec")
	r := &Registry{Dir: dir}
	componenttest.Run(t, r.Run)
	const name = "example.com/one"
	if _, err := r.Ready(context.Background(), name); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("before: %v", err)
	}
	write(t, executable(dir, name), loggingScript)
	eventually.True(t, "installed", hasState(r, name, StateReady))
	first, _ := r.Lookup(name)

	write(t, executable(dir, name), strings.ReplaceAll(loggingScript, "false", "true"))
	eventually.True(t, "updated", func() bool {
		e, _ := r.Lookup(name)
		return e.State == StateReady && e.Version != first.Version && e.Driver.Capabilities().Attach
	})
	if err := os.Rename(filepath.Dir(executable(dir, name)), filepath.Join(dir, "..", "away")); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a renamed directory is a removal", hasState(r, name, StateRemoved))
	if _, err := r.Ready(context.Background(), name); err == nil || !strings.Contains(err.Error(), "removed") {
		t.Errorf("after the rename: %v", err)
	}
	driver, err := r.InUse(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Unmount(context.Background(), "/m"); !errors.Is(err, ErrGone) {
		t.Errorf("unmount without a copy: %v", err)
	}
	if err := r.Forget(name); err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Lookup(name); ok {
		t.Error("a forgotten driver still exists")
	}
	write(t, executable(dir, name), loggingScript)
	eventually.True(t, "installed again", hasState(r, name, StateReady))
}

func TestRemovedPluginDirectoryIsRecreated(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "exec")
	r := &Registry{Dir: dir}
	componenttest.Run(t, r.Run)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "made again", func() bool { _, err := os.Stat(dir); return err == nil })
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "made again", func() bool { _, err := os.Stat(dir); return err == nil })
	write(t, executable(dir, "x/y"), loggingScript)
	eventually.True(t, "the driver is found in the new directory", hasState(r, "x/y", StateReady))
}

func TestUnchangedContentIsNotAChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := executable(dir, "x/y")
	write(t, path, loggingScript) // the script also logs to its own directory
	r := &Registry{Dir: dir}
	componenttest.Run(t, r.Run)
	generation := r.Generation()
	write(t, path, loggingScript)
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	// Once a second driver is found, the scan after the changes above has completed.
	write(t, executable(dir, "x/z"), loggingScript)
	eventually.True(t, "second driver", hasState(r, "x/z", StateReady))
	if got := read(t, path+".log"); got != "init\n" {
		t.Errorf("calls %q", got)
	}
	if r.Generation() == generation {
		t.Error("the generation does not increase")
	}
}

func TestFailedInitIsRetriedAndReported(t *testing.T) {
	t.Parallel()
	dir, keep := t.TempDir(), t.TempDir()
	path := executable(dir, "x/y")
	write(t, path, loggingScript)
	r := &Registry{Dir: dir, KeepDir: keep}
	componenttest.Run(t, r.Run)
	eventually.True(t, "ready", hasState(r, "x/y", StateReady))
	previous, _ := r.Lookup("x/y")

	write(t, path, "#!/bin/sh\necho \"$@\" >>\"$0.log\"\n[ -e \"$0.ok\" ] && exec echo '{\"status\":\"Success\"}'\necho '{\"status\":\"Failure\",\"message\":\"no jq\"}'\n")
	eventually.True(t, "failed", hasState(r, "x/y", StateFailed))
	e, _ := r.Lookup("x/y")
	if !strings.Contains(e.Err.Error(), "no jq") || !e.Retry.After(time.Now().Add(-time.Minute)) {
		t.Errorf("entry %+v", e)
	}
	if _, err := r.Ready(context.Background(), "x/y"); err == nil || !strings.Contains(err.Error(), "no jq") {
		t.Errorf("an older version is used without an error: %v", err)
	}
	// Volumes in use are unmounted with the older version. The path of its copy ends with the same
	// elements as the path of the installed driver.
	if err := e.Driver.Unmount(context.Background(), "/m"); err != nil {
		t.Error(err)
	}
	if got := read(t, filepath.Join(keep, "x~y", "y.log")); got != "unmount\n" {
		t.Errorf("calls of the last-good version: %q", got)
	}
	if err := os.WriteFile(path+".ok", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "init is retried", hasState(r, "x/y", StateReady))
	if e, _ := r.Lookup("x/y"); e.Version == previous.Version || !e.Driver.Capabilities().Attach {
		t.Errorf("entry %+v", e)
	}
}

func TestRemovedDriverUnmountsAfterRestart(t *testing.T) {
	t.Parallel()
	dir, keep := t.TempDir(), t.TempDir()
	write(t, executable(dir, "x/y"), loggingScript)
	t.Run("before", func(t *testing.T) {
		r := &Registry{Dir: dir, KeepDir: keep}
		componenttest.Run(t, r.Run)
		eventually.True(t, "ready", hasState(r, "x/y", StateReady))
	})
	if err := os.RemoveAll(filepath.Join(dir, "x~y")); err != nil {
		t.Fatal(err)
	}
	r := &Registry{Dir: dir, KeepDir: keep}
	componenttest.Run(t, r.Run)
	e, _ := r.Lookup("x/y")
	if e.State != StateRemoved || e.Driver == nil || e.Driver.Capabilities().Attach {
		t.Fatalf("entry %+v", e)
	}
	if err := e.Driver.Unmount(context.Background(), "/m"); err != nil {
		t.Error(err)
	}
	if err := r.Forget("x/y"); err != nil {
		t.Fatal(err)
	}
	if remaining, err := os.ReadDir(lastGoodDir(keep, "x/y")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("remaining after Forget: %v, error %v", remaining, err)
	}
}

func TestSlowInitDelaysOnlyItsDriver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &Registry{Dir: dir}
	componenttest.Run(t, r.Run)
	write(t, executable(dir, "x/slow"), "#!/bin/sh\nsleep 1000\n")
	eventually.True(t, "slow driver found", hasState(r, "x/slow", StateInitializing))
	write(t, executable(dir, "x/quick"), loggingScript)
	eventually.True(t, "quick driver", hasState(r, "x/quick", StateReady))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.Ready(ctx, "x/slow"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("slow driver: %v", err)
	}
	write(t, executable(dir, "x/slow"), loggingScript)
	eventually.True(t, "a new version cancels the old version's init", hasState(r, "x/slow", StateReady))
}

func TestBurstOfChangesIsScannedOncePerSecond(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &Registry{Dir: dir}
	componenttest.Run(t, r.Run)
	start := time.Now()
	changes := 0
	for ; changes < 10_000 || time.Since(start) < 2*time.Second; changes++ {
		write(t, executable(dir, "x/y"), loggingScript+strings.Repeat("#", changes%1000))
	}
	write(t, executable(dir, "x/y"), loggingScript+"# last\n")
	want, err := hashFile(executable(dir, "x/y"))
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the last change is seen", func() bool { e, _ := r.Lookup("x/y"); return e.Version == want && e.State == StateReady })
	r.mu.Lock()
	defer r.mu.Unlock()
	// The limit allows for one scan before the burst, and one at its start.
	if limit := int(time.Since(start)/time.Second) + 2; r.scans > limit {
		t.Errorf("%d scans in %s of %d changes", r.scans, time.Since(start), changes)
	}
}

func TestHungDriverDelaysNoStart(t *testing.T) {
	t.Parallel()
	const hanging = "example.com/hanging"
	dir := t.TempDir()
	write(t, executable(dir, "example.com/good"), loggingScript)
	write(t, executable(dir, hanging), "#!/bin/sh\nsleep 1000\n")
	r := &Registry{Dir: dir, KeepDir: t.TempDir(), Settings: func(string) Settings {
		return Settings{Timeouts: map[Operation]time.Duration{OpInit: initTimeout * 4 / 5}}
	}}
	componenttest.Run(t, r.Run) // ready before the init of the hanging driver times out
	if e, _ := r.Lookup(hanging); e.State != StateInitializing {
		t.Errorf("the hanging driver is %+v", e)
	}
	eventually.True(t, "the other driver is ready", hasState(r, "example.com/good", StateReady))
}
