package flexvolume

import (
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

// Installation is a driver's executable in a plug-in directory.
type Installation struct {
	// Driver is "vendor/driver", or "driver" without a vendor.
	Driver string `json:"driver"`
	Path   string `json:"path"`
	// Version is the SHA-256 of the executable in hexadecimal.
	Version string `json:"version"`
}

// Install makes a copy of file the executable of the driver, in the way that the design of dynamic discovery asks for: it is written
// to a name that begins with a dot, synced, and renamed, so that nobody ever runs a part of it and a running
// version is not disturbed. Its mode is 0755, whatever that of file is.
//
// A name that Kubernetes does not take for a driver's, a file that this machine cannot run, and a plug-in directory on a file system
// from which nothing can be run are errors, and nothing is changed then.
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
		return Installation{}, fmt.Errorf("create directory of driver: %w", err)
	}
	var system unix.Statfs_t
	if err := unix.Statfs(pluginDir, &system); err == nil && system.Flags&unix.ST_NOEXEC != 0 {
		return Installation{}, fmt.Errorf("install driver in %s: the file system is mounted noexec; use another volume-plugin-dir", pluginDir)
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return Installation{}, fmt.Errorf("install driver as %s: that is a directory; remove it", path)
	}
	if err := atomicfile.Write(path, content, 0o755); err != nil {
		return Installation{}, fmt.Errorf("install driver: %w", err)
	}
	// The directory itself may be new.
	if err := atomicfile.SyncFolder(pluginDir); err != nil {
		return Installation{}, fmt.Errorf("install driver: %w", err)
	}
	return Find(pluginDir, driver)
}

// ErrNotInstalled is in the error of Find, Remove and Survey for a driver that has no executable.
var ErrNotInstalled = errors.New("it is not installed")

// Find is the driver that is installed in a plug-in directory.
func Find(pluginDir, driver string) (Installation, error) {
	found := examine(pluginDir, EscapeName(driver))
	if found.missing {
		return Installation{}, fmt.Errorf("find FlexVolume driver %q: %w; there is no %s", driver, ErrNotInstalled, executable(pluginDir, driver))
	}
	if found.err != nil {
		return Installation{}, found.err
	}
	version, err := hashFile(found.path)
	if err != nil {
		return Installation{}, err
	}
	return Installation{Driver: driver, Path: found.path, Version: version}, nil
}

// Remove removes the driver's executable, and its directory if nothing else is in there. It returns the other files of the
// directory, which stay: some drivers keep their state beside themselves.
func Remove(pluginDir, driver string) (left []string, err error) {
	if err := checkName(EscapeName(driver)); err != nil {
		return nil, err
	}
	path := executable(pluginDir, driver)
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove FlexVolume driver %q: %w; there is no %s", driver, ErrNotInstalled, path)
	} else if err != nil {
		return nil, fmt.Errorf("remove FlexVolume driver %q: %w", driver, err)
	}
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read directory of driver: %w", err)
	}
	for _, e := range entries {
		left = append(left, filepath.Join(dir, e.Name()))
	}
	if len(left) > 0 {
		return left, atomicfile.SyncFolder(dir)
	}
	if err := os.Remove(dir); err != nil {
		return nil, fmt.Errorf("remove directory of driver: %w", err)
	}
	return nil, atomicfile.SyncFolder(pluginDir)
}

// CheckName says why a driver cannot be called like that. Kubernetes wants a name of at most 63 letters, digits, "-", "_" and ".", that begins and ends
// with a letter or digit, with or without a vendor before it that is a DNS name.
func CheckName(driver string) error {
	if problems := validation.IsQualifiedName(driver); len(problems) > 0 {
		return fmt.Errorf("read driver's name %q: %s; write it as vendor/name, such as example.com/loop", driver, strings.Join(problems, "; "))
	}
	return nil
}

// Usage is how many volumes of a driver are, or may be, in use on a node, by kubelet's directories.
type Usage struct {
	// Pods is the number of volumes of pods.
	Pods int `json:"pods"`
	// Devices is the number of volumes that are mounted for all pods of the node.
	Devices int `json:"devices"`
}

// UsageOf counts the volumes of a driver below kubelet's root directory.
func UsageOf(kubeletRoot, driver string) Usage {
	root := escapeGlob(kubeletRoot)
	pods, _ := filepath.Glob(filepath.Join(root, "pods", "*", "volumes", escapeGlob(EscapeName(driver)), "*"))
	devices, _ := filepath.Glob(DeviceMountDir(root, escapeGlob(driver), "*"))
	return Usage{Pods: len(pods), Devices: len(devices)}
}
