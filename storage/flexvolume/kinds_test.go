package flexvolume

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// TestDataOutlivesPodProcessAndDriverVersion checks for each kind of driver that a volume's data
// outlives the pod, the process that called the driver, and the driver version.
func TestDataOutlivesPodProcessAndDriverVersion(t *testing.T) {
	for _, kind := range []struct {
		name, file, fsType, size string
		fileSystem               int64 // magic number; 0 for any
	}{
		{"a shell script with ext4 on a loop device", "loop", "ext4", "16M", unix.EXT4_SUPER_MAGIC},
		{"a shell script with xfs on a loop device", "loop", "xfs", "320M", unix.XFS_SUPER_MAGIC},
		{"a FUSE daemon", "fuse", "", "", unix.FUSE_SUPER_MAGIC},
		{"an overlay", "overlay", "", "", unix.OVERLAYFS_SUPER_MAGIC},
		{"a Python program that binds", "bind", "", "", 0},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			plugins, keep, pod := scratch(t), t.TempDir(), filepath.Join(scratch(t), "volume")
			content := read(t, filepath.Join("testdata", kind.file))
			write(t, executable(plugins, "example.com/"+kind.file), content)
			mounting := MountRequest{Volume: Volume{Name: "pv1", FSType: kind.fsType, Options: map[string]string{"size": kind.size}}}
			marker := filepath.Join(t.TempDir(), "marker")
			// use simulates the lifetime of one process that calls the driver.
			use := func(name string, do func(t *testing.T, ctx context.Context, driver *Driver)) {
				t.Helper()
				t.Run(name, func(t *testing.T) {
					r := &Registry{Dir: plugins, KeepDir: keep}
					componenttest.Run(t, r.Run)
					driver, err := r.Ready(context.Background(), "example.com/"+kind.file)
					if err != nil {
						t.Fatal(err)
					}
					do(t, context.Background(), driver)
				})
			}
			publish := func(t *testing.T, ctx context.Context, driver *Driver) {
				t.Helper()
				if err := driver.Publish(ctx, mounting, pod, "", marker, nil); err != nil {
					t.Fatal(err)
				}
				if !isMounted(t, pod) {
					t.Fatal("nothing is mounted")
				}
			}
			use("first", func(t *testing.T, ctx context.Context, driver *Driver) {
				publish(t, ctx, driver)
				var stat unix.Statfs_t
				if err := unix.Statfs(pod, &stat); err != nil {
					t.Fatal(err)
				}
				if kind.fileSystem != 0 && stat.Type != kind.fileSystem {
					t.Errorf("file system %#x, want %#x", stat.Type, kind.fileSystem)
				}
				if err := os.WriteFile(filepath.Join(pod, "file"), []byte("kept"), 0o600); err != nil {
					t.Fatal(err)
				}
			})
			// The mount and its daemon, if any, have survived the process. The driver has a new
			// version.
			write(t, executable(plugins, "example.com/"+kind.file), content+"# second\n")
			use("second", func(t *testing.T, ctx context.Context, driver *Driver) {
				if got := read(t, filepath.Join(pod, "file")); got != "kept" {
					t.Errorf("after a restart: %q", got)
				}
				publish(t, ctx, driver)
				if table, err := mountsBelow(pod); err != nil || len(table) != 1 {
					t.Errorf("%d mounts, %v", len(table), err)
				}
				if err := driver.Unpublish(ctx, pod, marker); err != nil {
					t.Fatal(err)
				}
				if _, err := os.Lstat(pod); !os.IsNotExist(err) || isMounted(t, pod) {
					t.Errorf("left behind: %v", err)
				}
				publish(t, ctx, driver)
				if got := read(t, filepath.Join(pod, "file")); got != "kept" {
					t.Errorf("after the pod: %q", got)
				}
				if err := driver.Unpublish(ctx, pod, marker); err != nil {
					t.Fatal(err)
				}
			})
			eventually.True(t, "no loop device remains", func() bool { return len(loopDevicesOf(t, plugins)) == 0 })
		})
	}
}

// loopDevicesOf returns the loop devices whose backing files are below dir.
func loopDevicesOf(t *testing.T, dir string) (devices []string) {
	t.Helper()
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if backing, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(backing), dir+"/") {
			devices = append(devices, file)
		}
	}
	return devices
}

func TestDriverThatWritesFilesInsteadOfMounting(t *testing.T) {
	plugins, pod := t.TempDir(), filepath.Join(t.TempDir(), "pods", "uid", "volumes", "example.com~files", "v")
	path := executable(plugins, "example.com/files")
	write(t, path, read(t, "testdata/files"))
	driver, ctx := NewDriver("example.com/files", path, Settings{}), context.Background()
	for range 2 {
		if err := driver.Publish(ctx, MountRequest{Volume: Volume{Name: "v"}}, pod, "", "", nil); err != nil {
			t.Fatal(err)
		}
		// The driver receives its installed path and the volume's directory.
		if got, want := read(t, filepath.Join(pod, "file")), path+" "+pod+"\n"; got != want {
			t.Errorf("file %q, want %q", got, want)
		}
	}
	for range 2 {
		if err := driver.Unpublish(ctx, pod, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(pod); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
}

func TestWaitForAttachGetsEmptyDeviceIfAttachReturnsNone(t *testing.T) {
	path := install(t, `[ "$1" = attach ] && exec echo '{"status":"Success"}'; printf '%s|' $# "$@" >"$0.got"; echo '{"status":"Success","device":"/dev/found"}'`)
	driver, volume, ctx := NewDriver("example.com/test", path, Settings{}), Volume{Name: "v"}, context.Background()
	device, err := driver.Attach(ctx, volume, "node")
	if err != nil || device != "" {
		t.Fatalf("attach: device %q, %v", device, err)
	}
	if device, err = driver.WaitForAttach(ctx, device, volume); err != nil || device != "/dev/found" {
		t.Errorf("waitforattach: device %q, %v", device, err)
	}
	const want = `3|waitforattach||{"kubernetes.io/fsType":"","kubernetes.io/pvOrVolumeName":"v","kubernetes.io/readwrite":"rw"}|`
	if got := read(t, path+".got"); got != want {
		t.Errorf("arguments %s, want %s", got, want)
	}
}
