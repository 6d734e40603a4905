package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

// Release unmounts all FlexVolumes on a node whose kubelet is not running. It uses only directories
// and the mount table.
type Release struct {
	// KubeletRoot is the kubelet's root directory.
	KubeletRoot string
	// PluginDir and KeepDir are the directories of the node's Registry.
	PluginDir, KeepDir string
}

// All unmounts the volumes of all pods, then all devices, each with its driver if the driver
// exists. If a driver fails, All unmounts the volume without the driver and continues. warnings
// describes anything that a driver did not remove. err lists the remaining mounts.
func (r Release) All(ctx context.Context) (warnings []string, err error) {
	var errs []error
	release := func(dir, driver string, undo func(context.Context) error) {
		warning, err := release(ctx, dir, driver, undo)
		if warning != "" {
			warnings = append(warnings, warning)
		}
		errs = append(errs, err)
	}
	for _, dir := range r.podVolumes() {
		driver := r.driver(UnescapeName(filepath.Base(filepath.Dir(dir))))
		if _, err := detachAll(r.subpaths(dir)); err != nil {
			errs = append(errs, err)
		}
		release(dir, driver.name, func(ctx context.Context) error { return driver.Unpublish(ctx, dir, "") })
	}
	for _, staged := range StagedVolumes(r.KubeletRoot) {
		driver := r.driver(staged.Driver)
		release(staged.Dir, driver.name, func(ctx context.Context) error { return driver.Unstage(ctx, staged.Dir, "") })
	}
	return warnings, errors.Join(errs...)
}

// release undoes one mount. If the driver fails, release unmounts without the driver. In this case,
// the warning contains the driver's error, because some of the driver's work might not be undone,
// such as a device that the driver created.
func release(ctx context.Context, dir, driver string, undo func(context.Context) error) (warning string, err error) {
	failure := undo(ctx)
	if failure == nil {
		return "", nil
	}
	lazy, err := detachAll(dir)
	if err != nil {
		return "", errors.Join(failure, err)
	}
	_ = os.Remove(dir)
	how := "was unmounted without the driver"
	if lazy {
		how = "was detached lazily: its file system stays mounted until the last process that uses it ends"
	}
	return fmt.Sprintf("%v; %s %s. Other resources that the driver %q created, such as a device, can remain on the host; remove them with its tools",
		failure, dir, how, driver), nil
}

// detachAll unmounts all mounts at and below dir, even if they are in use. lazy reports whether any
// mount was in use.
func detachAll(dir string) (lazy bool, err error) {
	table, err := mountsBelow(dir)
	if err != nil {
		return false, err
	}
	for _, m := range slices.Backward(table) {
		if mount.New("").Unmount(m.Mountpoint) == nil {
			continue
		}
		lazy = true
		if err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return lazy, fmt.Errorf("unmount %s: %w", m.Mountpoint, err)
		}
	}
	return lazy, nil
}

// driver returns the installed driver. If the driver is not installed, it returns the last-good
// copy. If there is no copy either, it returns a driver whose calls return ErrGone.
func (r Release) driver(name string) *Driver {
	path := executable(r.PluginDir, name)
	if _, err := os.Stat(path); err != nil {
		path = ""
		if copyPath := executable(r.KeepDir, name); r.KeepDir != "" {
			if _, err := os.Stat(copyPath); err == nil {
				path = copyPath
			}
		}
	}
	return NewDriver(name, path, Settings{})
}

// podVolumes returns the FlexVolume directories of all pods. It skips the directories of the
// kubelet's own plugins, "kubernetes.io~...", unless a driver with that name exists.
func (r Release) podVolumes() []string {
	dirs, _ := filepath.Glob(filepath.Join(escapeGlob(r.KubeletRoot), "pods", "*", "volumes", "*", "*"))
	return slices.DeleteFunc(dirs, func(dir string) bool {
		name := filepath.Base(filepath.Dir(dir))
		return strings.HasPrefix(name, "kubernetes.io~") && r.driver(UnescapeName(name)).path == ""
	})
}

// StagedVolume is a directory at which a device is or was mounted for all pods on a node.
type StagedVolume struct{ Driver, Volume, Dir string }

// StagedVolumes returns the staged volumes below the kubelet's root directory, for drivers with and
// without a vendor.
func StagedVolumes(kubeletRoot string) []StagedVolume {
	root := escapeGlob(kubeletRoot)
	withVendor, _ := filepath.Glob(DeviceMountDir(root, "*/*", "*"))
	withoutVendor, _ := filepath.Glob(DeviceMountDir(root, "*", "*"))
	var volumes []StagedVolume
	for _, dir := range append(withVendor, withoutVendor...) {
		driver, err := filepath.Rel(filepath.Join(kubeletRoot, "plugins", "kubernetes.io", "flexvolume"), filepath.Dir(filepath.Dir(dir)))
		if err == nil {
			volumes = append(volumes, StagedVolume{Driver: driver, Volume: filepath.Base(dir), Dir: dir})
		}
	}
	return volumes
}

// subpaths returns the directory that contains the kubelet's bind mounts for containers that use a
// subpath of the volume.
func (r Release) subpaths(dir string) string {
	pod := filepath.Dir(filepath.Dir(filepath.Dir(dir)))
	return filepath.Join(pod, "volume-subpaths", filepath.Base(dir))
}

// escapeGlob escapes a path so that, as a glob pattern, it matches only itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Uses reports whether a volume of the driver might be in use on the node, according to the
// kubelet's directories.
func Uses(kubeletRoot, driver string) bool {
	root := escapeGlob(kubeletRoot)
	pods, _ := filepath.Glob(filepath.Join(root, "pods", "*", "volumes", escapeGlob(EscapeName(driver)), "*"))
	devices, _ := filepath.Glob(DeviceMountDir(root, escapeGlob(driver), "*"))
	return len(pods)+len(devices) > 0
}
