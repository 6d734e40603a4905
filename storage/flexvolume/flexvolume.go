// Package flexvolume is the engine for FlexVolume drivers: it discovers, calls and supervises
// drivers.
//
// A driver is an executable at <directory>/<vendor>~<driver>/<driver>. Its first argument is an
// operation. Its response is one JSON object. A Registry watches the directory and tracks the state
// of each driver. A Driver has one method per operation. Stage, Unstage, Publish and Unpublish run
// a sequence of operations on a node. They skip work that the kernel's mount table shows as
// complete. They implement operations that the driver does not support, in the same way as
// Kubernetes.
//
// The package implements the interface described in OpenShift Container Platform 3's FlexVolume
// documentation and implemented by Kubernetes' in-tree plugin. Arguments, JSON (byte for byte) and
// paths are the same as in Kubernetes, because drivers parse all three. The engine fixes several
// faults of the in-tree plugin:
//   - It reads responses from standard output even if standard error contains noise.
//   - It kills the whole process group of an operation that exceeds its deadline.
//   - It keeps secrets out of errors.
//   - A driver that hangs does not delay other drivers.
//
// discovery.go and watch.go find drivers and retry a failed init. process.go runs a call. The
// engine does not retry other failed calls: the kubelet and the attach-detach controller retry
// them.
//
// The package does not import Kubernetes internals, so it can be used by a volume plugin, a CSI
// server and a command.
package flexvolume

import (
	"fmt"
	"path/filepath"
	"strings"
)

// EscapeName returns a driver's directory name: "example.com~loop" for "example.com/loop".
func EscapeName(driver string) string { return strings.ReplaceAll(driver, "/", "~") }

// UnescapeName returns the driver name for a directory name: "example.com/loop" for
// "example.com~loop".
func UnescapeName(directory string) string { return strings.ReplaceAll(directory, "~", "/") }

// executable returns the path of a driver's executable in a plugin directory.
func executable(pluginDir, driver string) string {
	return filepath.Join(pluginDir, EscapeName(driver), driver[strings.LastIndexByte(driver, '/')+1:])
}

// DeviceMountDir returns the directory at which Kubernetes mounts a volume's device on a node. It
// is below the kubelet's root directory. Drivers parse the driver and the volume from this path.
// The driver's name is not escaped, so it is two path elements if it contains a vendor, and one
// path element otherwise.
func DeviceMountDir(kubeletRoot, driver, volumeName string) string {
	return filepath.Join(kubeletRoot, "plugins", "kubernetes.io", "flexvolume", driver, "mounts", volumeName)
}

// checkName returns an error if a directory name is not a valid driver name. Kubernetes allows at
// most one vendor before the driver.
func checkName(directory string) error {
	vendor, driver, qualified := strings.Cut(directory, "~")
	if qualified && (vendor == "" || driver == "" || strings.Contains(driver, "~")) {
		return fmt.Errorf("read driver directory %q: its name is not <vendor>~<driver>; rename it", directory)
	}
	return nil
}
