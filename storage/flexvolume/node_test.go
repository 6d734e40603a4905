package flexvolume

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// shell drivers that mount a tmpfs, and that lack everything.
const (
	tmpfsDriver = `case $1 in
mount|mountdevice) mount -t tmpfs none "$2" && echo '{"status":"Success"}' ;;
unmount|unmountdevice) umount "$2" && echo '{"status":"Success"}' ;;
*) echo '{"status":"Not supported"}' ;; esac`
	emptyDriver = `echo '{"status":"Not supported"}'; exit 1`
)

func isMounted(t *testing.T, dir string) bool {
	t.Helper()
	there, err := mounted(dir)
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// scratch is a directory below which nothing stays mounted.
func scratch(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := unmountAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// loopDevice is a block device of 16 MiB.
func loopDevice(t *testing.T) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 16<<20); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", image).Output()
	if err != nil {
		t.Fatal(err)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if err := exec.Command("losetup", "--detach", device).Run(); err != nil {
			t.Error(err)
		}
	})
	return device
}

func TestADriversMountsAreMadeAndUndoneOnce(t *testing.T) {
	ctx, dir := context.Background(), scratch(t)
	driver := newTestDriver(t, tmpfsDriver)
	staged, published, marker := filepath.Join(dir, "staged"), filepath.Join(dir, "published"), filepath.Join(dir, "markers", "m")
	for range 2 {
		if err := driver.Stage(ctx, Volume{Name: "v"}, "/dev/x", staged, marker); err != nil {
			t.Fatal(err)
		}
		if err := driver.Publish(ctx, Mounting{Volume: Volume{Name: "v"}}, published, staged, marker, nil); err != nil {
			t.Fatal(err)
		}
	}
	if table, err := mountsBelow(dir); err != nil || len(table) != 2 {
		t.Errorf("%d mounts, %v", len(table), err)
	}
	for range 2 {
		if err := driver.Unpublish(ctx, published, marker); err != nil {
			t.Fatal(err)
		}
		if err := driver.Unstage(ctx, staged, marker); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{staged, published, marker} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestWhatADriverLacksIsDoneForIt(t *testing.T) {
	ctx, dir := context.Background(), scratch(t)
	driver := newTestDriver(t, emptyDriver)
	device := loopDevice(t)
	staged := filepath.Join(dir, "staged")
	for _, readOnly := range []bool{false, true} {
		published := filepath.Join(dir, "published")
		volume := Volume{Name: "v", FSType: "ext4", ReadOnly: readOnly}
		if err := driver.Stage(ctx, volume, device, staged, ""); err != nil {
			t.Fatal(err)
		}
		if err := driver.Publish(ctx, Mounting{Volume: volume}, published, staged, "", nil); err != nil {
			t.Fatal(err)
		}
		var stat unix.Statfs_t
		if err := unix.Statfs(published, &stat); err != nil {
			t.Fatal(err)
		}
		if stat.Type != unix.EXT4_SUPER_MAGIC {
			t.Errorf("file system %#x", stat.Type)
		}
		file := filepath.Join(published, "file")
		switch err := os.WriteFile(file, []byte("kept"), 0o600); {
		case readOnly && err == nil:
			t.Error("a read-only volume is writable")
		case !readOnly && err != nil:
			t.Error(err)
		}
		if got := read(t, file); got != "kept" {
			t.Errorf("file %q", got)
		}
		if err := driver.Unpublish(ctx, published, ""); err != nil {
			t.Fatal(err)
		}
		if err := driver.Unstage(ctx, staged, ""); err != nil {
			t.Fatal(err)
		}
	}
	if table, err := mountsBelow(dir); err != nil || len(table) != 0 {
		t.Errorf("%d mounts are left, %v", len(table), err)
	}
}

func TestABindOfTheSamePodIsReadOnlyWhileTheStagedVolumeIsNot(t *testing.T) {
	ctx, dir := context.Background(), scratch(t)
	driver := newTestDriver(t, `case $1 in mountdevice) mount -t tmpfs none "$2"; echo '{"status":"Success"}';; *) `+emptyDriver+`;; esac`)
	staged, published := filepath.Join(dir, "staged"), filepath.Join(dir, "published")
	if err := driver.Stage(ctx, Volume{Name: "v"}, "", staged, ""); err != nil {
		t.Fatal(err)
	}
	if err := driver.Publish(ctx, Mounting{Volume: Volume{Name: "v", ReadOnly: true}}, published, staged, "", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(staged, "x"), nil, 0o600); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(published, "y"), nil, 0o600); err == nil {
		t.Error("the pod's directory is writable")
	}
}

func TestAMountThatFailedHalfWayIsUndone(t *testing.T) {
	ctx, dir := context.Background(), scratch(t)
	fail := filepath.Join(t.TempDir(), "fail")
	if err := os.WriteFile(fail, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	driver := newTestDriver(t, `case $1 in
mount) mount -t tmpfs none "$2"; [ -e `+fail+` ] && exec echo '{"status":"Failure"}'; touch "$2/complete"; echo '{"status":"Success"}';;
*) `+emptyDriver+`;; esac`)
	published := filepath.Join(dir, "published")
	if err := driver.Publish(ctx, Mounting{}, published, "", "", nil); KindOf(err) != KindFailure {
		t.Fatalf("error %v", err)
	}
	if isMounted(t, published) {
		t.Error("half a mount is left")
	}
	if err := os.Remove(fail); err != nil {
		t.Fatal(err)
	}
	if err := driver.Publish(ctx, Mounting{}, published, "", "", nil); err != nil {
		t.Fatal(err)
	}
	read(t, filepath.Join(published, "complete"))
}

func TestAMountInterruptedByACrashIsMadeAnew(t *testing.T) {
	ctx, dir := context.Background(), scratch(t)
	driver := newTestDriver(t, tmpfsDriver)
	published, marker := filepath.Join(dir, "published"), filepath.Join(dir, "marker")
	// The traces of a process that was killed while the driver was at work.
	if err := os.Mkdir(published, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", published, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{marker, filepath.Join(published, "half")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := driver.Publish(ctx, Mounting{}, published, "", marker, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(published, "half")); !os.IsNotExist(err) || !isMounted(t, published) {
		t.Errorf("the half done mount is used: %v", err)
	}
	if table, err := mountsBelow(published); err != nil || len(table) != 1 {
		t.Errorf("%d mounts, %v", len(table), err)
	}
}

func TestUnmountingWhatIsNotMounted(t *testing.T) {
	driver := newTestDriver(t, tmpfsDriver) // whose umount fails then
	dir := filepath.Join(t.TempDir(), "published")
	if err := driver.Unpublish(context.Background(), dir, ""); err != nil {
		t.Errorf("no directory: %v", err)
	}
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := driver.Unpublish(context.Background(), dir, ""); err != nil {
		t.Errorf("empty directory: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := driver.Unpublish(context.Background(), dir, ""); err == nil {
		t.Error("files were thrown away")
	}
	read := filepath.Join(dir, "data")
	if _, err := os.Stat(read); err != nil {
		t.Error(err)
	}
}

func TestReleaseLeavesNoMount(t *testing.T) {
	root, plugins := scratch(t), t.TempDir()
	write(t, executable(plugins, "example.com/tmpfs"), "#!/bin/sh\necho \"$@\" >>\"$0.log\"\n"+tmpfsDriver)
	write(t, executable(plugins, "example.com/broken"), "#!/bin/sh\nexit 1\n")
	pod := filepath.Join(root, "pods", "uid")
	mounts := []string{
		filepath.Join(pod, "volumes", "example.com~tmpfs", "v"),
		filepath.Join(pod, "volume-subpaths", "v", "container", "0"),
		filepath.Join(pod, "volumes", "example.com~gone", "v"),
		filepath.Join(pod, "volumes", "example.com~broken", "w"),
		DeviceMountDir(root, "example.com/tmpfs", "disk"),
		DeviceMountDir(root, "plain", "disk"),
	}
	other := filepath.Join(pod, "volumes", "kubernetes.io~empty-dir", "v")
	for _, dir := range append(mounts, other) {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	if !Uses(root, "example.com/tmpfs") || Uses(root, "example.com/other") {
		t.Error("Uses is wrong")
	}
	err := Release{KubeletRoot: root, PluginDir: plugins}.All(context.Background())
	if err == nil || !strings.Contains(err.Error(), `"example.com/broken"`) || strings.Contains(err.Error(), "gone") {
		t.Errorf("error %v", err)
	}
	for _, dir := range mounts {
		if isMounted(t, dir) {
			t.Errorf("%s is still mounted", dir)
		}
	}
	if !isMounted(t, other) {
		t.Error("a volume of kubelet's own was unmounted")
	}
	want := "unmount " + mounts[0] + "\nunmountdevice " + mounts[4] + "\n"
	if got := read(t, executable(plugins, "example.com/tmpfs")+".log"); got != want {
		t.Errorf("calls\n%swant\n%s", got, want)
	}
}
