package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Shell drivers: one driver mounts a tmpfs, the other supports no operation.
const (
	tmpfsDriver = `case $1 in
mount|mountdevice) mount -t tmpfs none "$2" && echo '{"status":"Success"}' ;;
unmount|unmountdevice) umount "$2" && echo '{"status":"Success"}' ;;
*) echo '{"status":"Not supported"}' ;; esac`
	emptyDriver = `echo '{"status":"Not supported"}'; exit 1`
)

func isMounted(t *testing.T, dir string) bool {
	t.Helper()
	isMounted, err := mounted(dir)
	if err != nil {
		t.Fatal(err)
	}
	return isMounted
}

// scratch returns a directory. All mounts below the directory are removed at the end of the test.
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

// loopDevice returns a block device of 16 MiB.
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

func TestMountsAreCreatedAndRemovedOnce(t *testing.T) {
	ctx, dir := context.Background(), scratch(t)
	driver := newTestDriver(t, tmpfsDriver)
	stagedDir, podDir, marker := filepath.Join(dir, "staged"), filepath.Join(dir, "published"), filepath.Join(dir, "markers", "m")
	for range 2 {
		if err := driver.Stage(ctx, Volume{Name: "v"}, "/dev/x", stagedDir, marker); err != nil {
			t.Fatal(err)
		}
		if err := driver.Publish(ctx, MountRequest{Volume: Volume{Name: "v"}}, podDir, stagedDir, marker, nil); err != nil {
			t.Fatal(err)
		}
	}
	if table, err := mountsBelow(dir); err != nil || len(table) != 2 {
		t.Errorf("%d mounts, %v", len(table), err)
	}
	for range 2 {
		if err := driver.Unpublish(ctx, podDir, marker); err != nil {
			t.Fatal(err)
		}
		if err := driver.Unstage(ctx, stagedDir, marker); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{stagedDir, podDir, marker} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The server of this FUSE file system does not respond, so every access to the file system blocks.
func TestMountOfHangingFileSystemIsFound(t *testing.T) {
	dir := filepath.Join(scratch(t), "volume")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	server, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(server) // ends pending requests
	if err := unix.Mount("hanging", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server)); err != nil {
		t.Fatal(err)
	}
	if !isMounted(t, dir) {
		t.Error("the mount is not found")
	}
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if isMounted(t, dir) || isMounted(t, filepath.Join(dir, "missing")) {
		t.Error("a mount is found after it was removed")
	}
}

func TestUnsupportedOperationsAreImplementedByEngine(t *testing.T) {
	ctx, dir := context.Background(), scratch(t)
	driver := newTestDriver(t, emptyDriver)
	device := loopDevice(t)
	stagedDir := filepath.Join(dir, "staged")
	for _, readOnly := range []bool{false, true} {
		podDir := filepath.Join(dir, "published")
		volume := Volume{Name: "v", FSType: "ext4", ReadOnly: readOnly}
		if err := driver.Stage(ctx, volume, device, stagedDir, ""); err != nil {
			t.Fatal(err)
		}
		if err := driver.Publish(ctx, MountRequest{Volume: volume}, podDir, stagedDir, "", nil); err != nil {
			t.Fatal(err)
		}
		var stat unix.Statfs_t
		if err := unix.Statfs(podDir, &stat); err != nil {
			t.Fatal(err)
		}
		if stat.Type != unix.EXT4_SUPER_MAGIC {
			t.Errorf("file system %#x", stat.Type)
		}
		file := filepath.Join(podDir, "file")
		switch err := os.WriteFile(file, []byte("kept"), 0o600); {
		case readOnly && err == nil:
			t.Error("a read-only volume is writable")
		case !readOnly && err != nil:
			t.Error(err)
		}
		if got := read(t, file); got != "kept" {
			t.Errorf("file %q", got)
		}
		if err := driver.Unpublish(ctx, podDir, ""); err != nil {
			t.Fatal(err)
		}
		if err := driver.Unstage(ctx, stagedDir, ""); err != nil {
			t.Fatal(err)
		}
	}
	if table, err := mountsBelow(dir); err != nil || len(table) != 0 {
		t.Errorf("%d mounts remain, %v", len(table), err)
	}
}

// The author of a pod chooses the file system type of an inline volume, and must not gain access to
// the host's files in this way.
func TestFileSystemsWithoutDeviceAreNotMounted(t *testing.T) {
	dir, driver, device := scratch(t), newTestDriver(t, emptyDriver), loopDevice(t)
	if output, err := exec.Command("mkfs.ext4", "-q", device).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	stagedDir := filepath.Join(dir, "staged")
	for _, fsType := range []string{"proc", "sysfs", "fuse.sh", "../ext4", "moduleless"} {
		err := driver.Stage(t.Context(), Volume{Name: "v", FSType: fsType}, device, stagedDir, "")
		if err == nil || !strings.Contains(err.Error(), "mount device: file system") {
			t.Errorf("%s: got error %v", fsType, err)
		}
		if isMounted(t, stagedDir) {
			t.Fatalf("a file system of type %s is mounted", fsType)
		}
	}
}

func TestPublishedBindIsReadOnlyAndStagedMountIsNot(t *testing.T) {
	ctx, dir := context.Background(), scratch(t)
	driver := newTestDriver(t, `case $1 in mountdevice) mount -t tmpfs none "$2"; echo '{"status":"Success"}';; *) `+emptyDriver+`;; esac`)
	stagedDir, podDir := filepath.Join(dir, "staged"), filepath.Join(dir, "published")
	if err := driver.Stage(ctx, Volume{Name: "v"}, "", stagedDir, ""); err != nil {
		t.Fatal(err)
	}
	if err := driver.Publish(ctx, MountRequest{Volume: Volume{Name: "v", ReadOnly: true}}, podDir, stagedDir, "", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stagedDir, "x"), nil, 0o600); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(podDir, "y"), nil, 0o600); err == nil {
		t.Error("the pod's directory is writable")
	}
}

func TestFailedMountIsUndone(t *testing.T) {
	ctx, dir := context.Background(), scratch(t)
	fail := filepath.Join(t.TempDir(), "fail")
	if err := os.WriteFile(fail, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	driver := newTestDriver(t, `case $1 in
mount) mount -t tmpfs none "$2"; [ -e `+fail+` ] && exec echo '{"status":"Failure"}'; touch "$2/complete"; echo '{"status":"Success"}';;
*) `+emptyDriver+`;; esac`)
	podDir := filepath.Join(dir, "published")
	if err := driver.Publish(ctx, MountRequest{}, podDir, "", "", nil); KindOf(err) != KindFailure {
		t.Fatalf("error %v", err)
	}
	if isMounted(t, podDir) {
		t.Error("a partial mount remains")
	}
	if err := os.Remove(fail); err != nil {
		t.Fatal(err)
	}
	if err := driver.Publish(ctx, MountRequest{}, podDir, "", "", nil); err != nil {
		t.Fatal(err)
	}
	read(t, filepath.Join(podDir, "complete"))
}

func TestInterruptedMountIsRepeated(t *testing.T) {
	ctx, dir := context.Background(), scratch(t)
	driver := newTestDriver(t, tmpfsDriver)
	podDir, marker := filepath.Join(dir, "published"), filepath.Join(dir, "marker")
	// Simulate a process that was killed while the driver was running.
	if err := os.Mkdir(podDir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", podDir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{marker, filepath.Join(podDir, "half")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := driver.Publish(ctx, MountRequest{}, podDir, "", marker, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(podDir, "half")); !os.IsNotExist(err) || !isMounted(t, podDir) {
		t.Errorf("the partial mount is used: %v", err)
	}
	if table, err := mountsBelow(podDir); err != nil || len(table) != 1 {
		t.Errorf("%d mounts, %v", len(table), err)
	}
}

func TestUnmountWithoutMount(t *testing.T) {
	driver := newTestDriver(t, tmpfsDriver) // its unmount fails if nothing is mounted
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
		t.Error("files were deleted")
	}
	content := filepath.Join(dir, "data")
	if _, err := os.Stat(content); err != nil {
		t.Error(err)
	}
}

func TestReleaseUnmountsEverything(t *testing.T) {
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
	foreignDir := filepath.Join(pod, "volumes", "kubernetes.io~empty-dir", "v")
	for _, dir := range append(mounts, foreignDir) {
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
	stuck := DeviceMountDir(root, "example.com/stuck", "disk")
	write(t, executable(plugins, "example.com/stuck"), "#!/bin/sh\necho '{\"status\": \"Failure\", \"message\": \"the disk is stuck\"}'\nexit 1\n")
	if err := errors.Join(os.MkdirAll(stuck, 0o750), unix.Mount("none", stuck, "tmpfs", 0, "")); err != nil {
		t.Fatal(err)
	}
	user, err := os.Create(filepath.Join(stuck, "file")) // keeps the file system in use
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	mounts = append(mounts, stuck)
	warnings, err := Release{KubeletRoot: root, PluginDir: plugins}.All(context.Background())
	if err != nil || len(warnings) != 2 {
		t.Fatalf("warnings %q, error %v", warnings, err)
	}
	for i, want := range [][]string{
		{`"example.com/broken"`, "was unmounted without the driver"},
		{`"example.com/stuck"`, "the disk is stuck", stuck, "detached lazily"},
	} {
		for _, part := range want {
			if !strings.Contains(warnings[i], part) {
				t.Errorf("warning %q lacks %s", warnings[i], part)
			}
		}
	}
	for _, dir := range mounts {
		if isMounted(t, dir) {
			t.Errorf("%s is still mounted", dir)
		}
	}
	if !isMounted(t, foreignDir) {
		t.Error("a volume of a kubelet plugin was unmounted")
	}
	want := "unmount " + mounts[0] + "\nunmountdevice " + mounts[4] + "\n"
	if got := read(t, executable(plugins, "example.com/tmpfs")+".log"); got != want {
		t.Errorf("calls\n%swant\n%s", got, want)
	}
}
