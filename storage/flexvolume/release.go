package flexvolume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Release finds and undoes what FlexVolume drivers have mounted on a node whose kubelet does not run. It goes by directories and
// the mount table alone.
type Release struct {
	// KubeletRoot is kubelet's root directory.
	KubeletRoot string
	// PluginDir and KeepDir are those of the node's Registry.
	PluginDir, KeepDir string
}

// All unmounts every volume of every pod, then every device, each with its driver if that is there. What a driver cannot unmount is unmounted
// without it; the errors of all that is left then are returned together.
func (r Release) All(ctx context.Context) error {
	var problems []error
	for _, dir := range r.podVolumes() {
		driver := r.driver(UnescapeName(filepath.Base(filepath.Dir(dir))))
		if err := r.subpaths(dir); err != nil {
			problems = append(problems, err)
		}
		problems = append(problems, r.release(ctx, dir, func(ctx context.Context) error { return driver.Unpublish(ctx, dir, "") }))
	}
	for _, staged := range StagedVolumes(r.KubeletRoot) {
		driver := r.driver(staged.Driver)
		problems = append(problems, r.release(ctx, staged.Dir, func(ctx context.Context) error { return driver.Unstage(ctx, staged.Dir, "") }))
	}
	return errors.Join(problems...)
}

// release undoes one mount, without the driver if need be.
func (r Release) release(ctx context.Context, dir string, undo func(context.Context) error) error {
	err := undo(ctx)
	if err == nil {
		return nil
	}
	if forced := unmountAll(dir); forced != nil {
		return errors.Join(err, forced)
	}
	_ = os.Remove(dir)
	// The driver's part may still be undone, such as a device that it made.
	return err
}

// driver is the installed driver, the kept copy of one that is not installed, or one that is gone.
func (r Release) driver(name string) *Driver {
	path := executable(r.PluginDir, name)
	if _, err := os.Stat(path); err != nil {
		path = ""
		if kept := executable(r.KeepDir, name); r.KeepDir != "" {
			if _, err := os.Stat(kept); err == nil {
				path = kept
			}
		}
	}
	return NewDriver(name, path, Settings{})
}

// podVolumes are the directories of FlexVolumes in pods. Directories of kubelet's own plug-ins, "kubernetes.io~…", are none unless there is
// such a driver.
func (r Release) podVolumes() []string {
	found, _ := filepath.Glob(filepath.Join(escapeGlob(r.KubeletRoot), "pods", "*", "volumes", "*", "*"))
	return slices.DeleteFunc(found, func(dir string) bool {
		name := filepath.Base(filepath.Dir(dir))
		return strings.HasPrefix(name, "kubernetes.io~") && r.driver(UnescapeName(name)).path == ""
	})
}

// Staged is a directory at which a device is, or was, mounted for all pods of a node.
type Staged struct{ Driver, Volume, Dir string }

// StagedVolumes are those below kubelet's root directory, of drivers with and without a vendor.
func StagedVolumes(kubeletRoot string) []Staged {
	root := escapeGlob(kubeletRoot)
	with, _ := filepath.Glob(DeviceMountDir(root, "*/*", "*"))
	without, _ := filepath.Glob(DeviceMountDir(root, "*", "*"))
	var found []Staged
	for _, dir := range append(with, without...) {
		driver, err := filepath.Rel(filepath.Join(kubeletRoot, "plugins", "kubernetes.io", "flexvolume"), filepath.Dir(filepath.Dir(dir)))
		if err == nil {
			found = append(found, Staged{Driver: driver, Volume: filepath.Base(dir), Dir: dir})
		}
	}
	return found
}

// subpaths unmounts what kubelet has bound of a pod's volume for containers that use a part of it.
func (r Release) subpaths(dir string) error {
	pod := filepath.Dir(filepath.Dir(filepath.Dir(dir)))
	return unmountAll(filepath.Join(pod, "volume-subpaths", filepath.Base(dir)))
}

// escapeGlob makes a path match only itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Uses says whether a volume of the driver is, or may be, in use on the node with that kubelet's root directory.
func Uses(kubeletRoot, driver string) bool {
	root := escapeGlob(kubeletRoot)
	pods, _ := filepath.Glob(filepath.Join(root, "pods", "*", "volumes", escapeGlob(EscapeName(driver)), "*"))
	devices, _ := filepath.Glob(DeviceMountDir(root, escapeGlob(driver), "*"))
	return len(pods)+len(devices) > 0
}
