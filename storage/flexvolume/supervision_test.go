package flexvolume

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// frozen returns a file system that blocks each process that writes to it, until thaw is called.
// Blocked processes are in the kernel and cannot receive signals.
func frozen(t *testing.T) (dir string, thaw func()) {
	t.Helper()
	dir = filepath.Join(scratch(t), "frozen")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	device := loopDevice(t)
	t.Cleanup(func() { _ = unmountAll(dir) }) // runs before the cleanup that removes the device
	for _, command := range [][]string{{"mkfs.ext4", "-q", device}, {"mount", device, dir}, {"fsfreeze", "--freeze", dir}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v, %s", command, err, out)
		}
	}
	thaw = func() { _ = exec.Command("fsfreeze", "--unfreeze", dir).Run() } // fails if called again
	t.Cleanup(thaw)
	return dir, thaw
}

func TestVolumeStaysLockedUntilKilledGroupIsGone(t *testing.T) {
	t.Parallel()
	dir, thaw := frozen(t)
	path := install(t, `[ "$1" = mount ] || exec echo '{"status":"Success"}'; touch `+dir+`/file & echo $! >"$0.child"; sleep 1000`)
	driver := NewDriver("example.com/test", path, Settings{Timeouts: map[Operation]time.Duration{
		OpMount: 300 * time.Millisecond, OpMountDevice: 300 * time.Millisecond,
	}})
	volume := Volume{Name: "v"}
	if err := driver.Mount(context.Background(), "/m", MountRequest{Volume: volume}); KindOf(err) != KindTimeout {
		t.Fatalf("error %v", err)
	}
	stat := read(t, "/proc/"+strings.TrimSpace(read(t, path+".child"))+"/stat")
	if !strings.Contains(stat, ") D ") {
		t.Fatalf("the driver's child is not in a system call: %s", stat)
	}
	if err := driver.MountDevice(context.Background(), "/d", "", volume); KindOf(err) != KindBusy {
		t.Errorf("while a child of the killed driver is running: %v", err)
	}
	if err := driver.MountDevice(context.Background(), "/d", "", Volume{Name: "other"}); err != nil {
		t.Errorf("another volume: %v", err)
	}
	thaw()
	eventually.True(t, "the volume's lock is free", func() bool {
		return driver.MountDevice(context.Background(), "/d", "", volume) == nil
	})
}

func TestHungDriverIsKilledInEachOperation(t *testing.T) {
	t.Parallel()
	volume, ctx := Volume{Name: "v"}, context.Background()
	calls := map[Operation]func(*Driver) error{
		OpInit:          func(d *Driver) error { _, err := d.Init(ctx); return err },
		OpGetVolumeName: func(d *Driver) error { _, _, err := d.VolumeName(ctx, volume); return err },
		OpAttach:        func(d *Driver) error { _, err := d.Attach(ctx, volume, "n"); return err },
		OpWaitForAttach: func(d *Driver) error { _, err := d.WaitForAttach(ctx, "", volume); return err },
		OpIsAttached:    func(d *Driver) error { _, err := d.IsAttached(ctx, volume, "n"); return err },
		OpMountDevice:   func(d *Driver) error { return d.MountDevice(ctx, "/d", "", volume) },
		OpMount:         func(d *Driver) error { return d.Mount(ctx, "/m", MountRequest{Volume: volume}) },
		OpExpandVolume:  func(d *Driver) error { _, err := d.ExpandVolume(ctx, volume, "/d", 2, 1); return err },
		OpExpandFS:      func(d *Driver) error { return d.ExpandFS(ctx, volume, "", "/d", 2, 1) },
		OpUnmount:       func(d *Driver) error { return d.Unmount(ctx, "/m") },
		OpUnmountDevice: func(d *Driver) error { return d.UnmountDevice(ctx, "/d") },
		OpDetach:        func(d *Driver) error { return d.Detach(ctx, "v", "n") },
	}
	for _, op := range Operations() {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			path := install(t, `echo $$ >"$0.pid"; exec sleep 1000`)
			driver := NewDriver("example.com/test", path, Settings{Timeouts: map[Operation]time.Duration{op: 300 * time.Millisecond}})
			err := calls[op](driver)
			if KindOf(err) != KindTimeout || !strings.Contains(err.Error(), "run "+string(op)+" of") {
				t.Errorf("error %v", err)
			}
			if pid := strings.TrimSpace(read(t, path+".pid")); pathExists("/proc/" + pid) {
				t.Errorf("process %s is alive", pid)
			}
		})
	}
}

func pathExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestFullDiskDoesNotPreventCalls(t *testing.T) {
	t.Parallel()
	dir, keep := t.TempDir(), scratch(t)
	write(t, executable(dir, "x/y"), "#!/bin/sh\n[ $1 = mount ] && exec echo '{\"status\":\"Failure\"}'\necho '{\"status\":\"Success\"}'\n")
	if err := unix.Mount("none", keep, "tmpfs", 0, "size=64k,nr_inodes=3"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(keep, "fill"), make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	r := &Registry{Dir: dir, KeepDir: keep}
	componenttest.Run(t, r.Run)
	driver, err := r.Ready(context.Background(), "x/y")
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Mount(context.Background(), "/m", MountRequest{}); KindOf(err) != KindFailure {
		t.Errorf("mount: %v", err)
	}
	if err := driver.Unmount(context.Background(), "/m"); err != nil {
		t.Errorf("unmount: %v", err)
	}
}

func TestConcurrencyLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := install(t, `mkdir `+dir+`/$$; ls `+dir+` | wc -l >>"$0.seen"; sleep 0.05; rmdir `+dir+`/$$; echo '{"status":"Success"}'`)
	driver := NewDriver("example.com/test", path, Settings{Concurrency: 3})
	errs := make(chan error)
	for n := range 12 {
		go func() {
			_, err := driver.Attach(context.Background(), Volume{Name: string(rune('a' + n))}, "node")
			errs <- err
		}()
	}
	for range 12 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	limit := ""
	for line := range strings.Lines(read(t, path+".seen")) {
		limit = max(limit, strings.TrimSpace(line))
	}
	if limit != "3" {
		t.Errorf("at most %s calls at the same time, want 3", limit)
	}
}

func TestHungDriverBlocksNeitherOthersNorDiscovery(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const hanging = "#!/bin/sh\n[ $1 = init ] || exec sleep 1000\necho '{\"status\":\"Success\"}'\n"
	write(t, executable(dir, "x/hanging"), hanging)
	write(t, executable(dir, "x/other"), loggingScript)
	r := &Registry{Dir: dir, Settings: func(string) Settings { return Settings{Concurrency: 2} }}
	componenttest.Run(t, r.Run)
	driver, err := r.Ready(context.Background(), "x/hanging")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	for _, volume := range []string{"/a", "/b", "/c"} {
		go func() { result <- driver.Unmount(ctx, volume) }()
	}
	eventually.True(t, "all slots of the driver are in use", func() bool { return len(driver.limiter.slots) == cap(driver.limiter.slots) })

	other, err := r.Ready(context.Background(), "x/other")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Unmount(context.Background(), "/a"); err != nil {
		t.Errorf("another driver: %v", err)
	}
	previous, _ := r.Lookup("x/hanging")
	write(t, executable(dir, "x/hanging"), hanging+"# a new version\n")
	eventually.True(t, "its new version", func() bool {
		e, _ := r.Lookup("x/hanging")
		return e.State == StateReady && e.Version != previous.Version
	})
	cancel()
	for range 3 {
		if err := <-result; err == nil {
			t.Error("a call that hangs succeeded")
		}
	}
}

func TestLastFailureIsRecordedWithoutSecrets(t *testing.T) {
	t.Parallel()
	dir, keep := t.TempDir(), t.TempDir()
	write(t, executable(dir, "x/y"), "#!/bin/sh\n[ $1 = mount ] && exec echo '{\"status\":\"Failure\",\"message\":\"no server, password pa55word\"}'\necho '{\"status\":\"Success\"}'\n")
	r := &Registry{Dir: dir, KeepDir: keep}
	componenttest.Run(t, r.Run)
	driver, err := r.Ready(context.Background(), "x/y")
	if err != nil {
		t.Fatal(err)
	}
	if last, err := LastFailure(keep, "x/y"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before any failure: %+v, %v", last, err)
	}
	start := time.Now()
	failed := driver.Mount(context.Background(), "/m", MountRequest{Volume: Volume{Name: "v"}, Secrets: map[string][]byte{"k": []byte("pa55word")}})
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := driver.Unmount(canceled, "/m"); err == nil {
		t.Error("a canceled call succeeded")
	}
	last, err := LastFailure(keep, "x/y")
	if err != nil {
		t.Fatal(err)
	}
	if last.Operation != OpMount || last.Kind != KindFailure || last.Message != failed.Error() || !strings.Contains(last.Message, "no server") ||
		strings.Contains(last.Message, "pa55word") || last.Time.Before(start.Round(0)) {
		t.Errorf("recorded %+v", last)
	}
	if err := os.RemoveAll(filepath.Join(dir, "x~y")); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "removed", hasState(r, "x/y", StateRemoved))
	if err := r.Forget("x/y"); err != nil {
		t.Fatal(err)
	}
	if last, err := LastFailure(keep, "x/y"); err == nil {
		t.Errorf("for a forgotten driver: %+v", last)
	}
}
