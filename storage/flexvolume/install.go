package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// Installation is a driver that is installed in a plugin directory.
type Installation struct {
	// Driver is "vendor/driver", or "driver" if there is no vendor.
	Driver string `json:"driver"`
	Path   string `json:"path"`
	// Version is the SHA-256 of the executable, in hexadecimal.
	Version string `json:"version"`
}

// Install copies file to the driver's path, as the design for dynamic discovery requires. It writes
// a file whose name begins with a dot, syncs the file and renames it. As a result, a partial
// executable never runs, and a running version is not disturbed. The mode is 0755, regardless of
// the file's mode.
//
// Install returns an error and changes nothing if the driver's name is not valid in Kubernetes, if
// this machine cannot run the file, or if the plugin directory's file system is mounted noexec.
func Install(pluginDir, driver, file string) (Installation, error) {
	if err := CheckName(driver); err != nil {
		return Installation{}, err
	}
	if err := CheckExecutable(file); err != nil {
		return Installation{}, err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return Installation{}, fmt.Errorf("read driver: %w", err)
	}
	path := executable(pluginDir, driver)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return Installation{}, fmt.Errorf("create driver directory: %w", err)
	}
	var system unix.Statfs_t
	if err := unix.Statfs(pluginDir, &system); err == nil && system.Flags&unix.ST_NOEXEC != 0 {
		return Installation{}, fmt.Errorf("install driver in %s: the file system is mounted noexec; use another volume-plugin-dir", pluginDir)
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return Installation{}, fmt.Errorf("install driver as %s: a directory with this name exists; remove it", path)
	}
	if err := atomicfile.Write(path, content, 0o755); err != nil {
		return Installation{}, fmt.Errorf("install driver: %w", err)
	}
	// Sync the plugin directory, because the driver's directory might be new.
	if err := atomicfile.SyncFolder(pluginDir); err != nil {
		return Installation{}, fmt.Errorf("install driver: %w", err)
	}
	return Find(pluginDir, driver)
}

// TryInstall runs init on the driver in file without installing the driver. The driver runs in a
// hidden directory, under its future name. TryInstall returns an error if the driver would not
// become ready.
func TryInstall(ctx context.Context, pluginDir, driver, file string, settings Settings) error {
	if err := os.MkdirAll(pluginDir, 0o755); err != nil {
		return fmt.Errorf("create FlexVolume plugin directory: %w", err)
	}
	dir, err := os.MkdirTemp(pluginDir, ".trial-")
	if err != nil {
		return fmt.Errorf("create directory for driver test: %w", err)
	}
	defer os.RemoveAll(dir)
	installation, err := Install(dir, driver, file)
	if err != nil {
		return err
	}
	if _, err := NewDriver(driver, installation.Path, settings).Init(ctx); err != nil {
		return fmt.Errorf("try FlexVolume driver %q: %w", driver, err)
	}
	return nil
}

// ErrNotInstalled is returned by Find, Remove and Inspect for a driver without an executable.
var ErrNotInstalled = errors.New("it is not installed")

// Find returns the driver that is installed in a plugin directory.
func Find(pluginDir, driver string) (Installation, error) {
	file := examine(pluginDir, EscapeName(driver))
	if file.missing {
		return Installation{}, fmt.Errorf("find FlexVolume driver %q: %w; %s does not exist", driver, ErrNotInstalled, executable(pluginDir, driver))
	}
	if file.err != nil {
		return Installation{}, file.err
	}
	version, err := hashFile(file.path)
	if err != nil {
		return Installation{}, err
	}
	return Installation{Driver: driver, Path: file.path, Version: version}, nil
}

// Remove removes the driver's executable and, if the driver's directory is then empty, the
// directory. It returns the files that remain in the directory: some drivers store their state next
// to the executable.
func Remove(pluginDir, driver string) (remaining []string, err error) {
	if err := checkName(EscapeName(driver)); err != nil {
		return nil, err
	}
	path := executable(pluginDir, driver)
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove FlexVolume driver %q: %w; %s does not exist", driver, ErrNotInstalled, path)
	} else if err != nil {
		return nil, fmt.Errorf("remove FlexVolume driver %q: %w", driver, err)
	}
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read driver directory: %w", err)
	}
	for _, e := range entries {
		remaining = append(remaining, filepath.Join(dir, e.Name()))
	}
	if len(remaining) > 0 {
		return remaining, atomicfile.SyncFolder(dir)
	}
	if err := os.Remove(dir); err != nil {
		return nil, fmt.Errorf("remove driver directory: %w", err)
	}
	return nil, atomicfile.SyncFolder(pluginDir)
}

// CheckName returns an error if driver is not a valid name. Kubernetes requires at most 63
// characters (letters, digits, "-", "_" and "."), beginning and ending with a letter or digit. The
// name can be prefixed with a vendor, which must be a DNS name.
func CheckName(driver string) error {
	if messages := validation.IsQualifiedName(driver); len(messages) > 0 {
		return fmt.Errorf("read driver name %q: %s; write it as vendor/name, such as example.com/loop", driver, strings.Join(messages, "; "))
	}
	return nil
}

// Usage counts a driver's volumes that might be in use on a node, according to the kubelet's
// directories.
type Usage struct {
	// Pods is the number of volumes that are published to pods.
	Pods int `json:"pods"`
	// Devices is the number of volumes that are staged on the node.
	Devices int `json:"devices"`
}

// UsageOf counts a driver's volumes below the kubelet's root directory.
func UsageOf(kubeletRoot, driver string) Usage {
	root := escapeGlob(kubeletRoot)
	pods, _ := filepath.Glob(filepath.Join(root, "pods", "*", "volumes", escapeGlob(EscapeName(driver)), "*"))
	devices, _ := filepath.Glob(DeviceMountDir(root, escapeGlob(driver), "*"))
	return Usage{Pods: len(pods), Devices: len(devices)}
}
