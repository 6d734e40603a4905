// Package flexvolume is the engine for FlexVolume drivers: it finds them, calls them and supervises them.
//
// A driver is an executable at <directory>/<vendor>~<driver>/<driver> whose first argument is an operation and whose
// answer is one JSON object. Registry watches the directory and knows the state of every driver; a Driver has one method for each
// operation of the interface. Stage, Unstage, Publish and Unpublish put those operations in order on a node: what
// the kernel's mount table shows as done is not done twice, and an operation that the driver answers with "Not supported"
// is done here instead, the way Kubernetes does it.
//
// The interface is that of the OpenShift Container Platform 3 document on FlexVolume and of Kubernetes' in-tree plug-in: the
// same arguments, the same JSON byte for byte, the same paths, because drivers take all three apart. It differs from
// the in-tree plug-in where that one is wrong: answers are read from standard output although standard error has noise; every
// operation has a deadline after which its whole process group is killed; secrets are in no error; a driver that
// hangs delays nobody else.
//
// The package imports nothing of Kubernetes' internals, so that any face (a volume plug-in, a CSI server, a command) can
// stand before it.
package flexvolume

import (
	"fmt"
	"path/filepath"
	"strings"
)

// EscapeName is a driver's name as a directory is called: "example.com/loop" is "example.com~loop".
func EscapeName(driver string) string { return strings.ReplaceAll(driver, "/", "~") }

// UnescapeName is the driver's name that belongs to a directory: "example.com~loop" is "example.com/loop".
func UnescapeName(directory string) string { return strings.ReplaceAll(directory, "~", "/") }

// executable is the path of a driver's executable in a plug-in directory.
func executable(pluginDir, driver string) string {
	return filepath.Join(pluginDir, EscapeName(driver), driver[strings.LastIndexByte(driver, '/')+1:])
}

// DeviceMountDir is where Kubernetes mounts a volume's device on a node, below kubelet's root directory; drivers read the driver
// and the volume out of it. The driver's name is not escaped, and without a vendor it is one directory.
func DeviceMountDir(kubeletRoot, driver, volumeName string) string {
	return filepath.Join(kubeletRoot, "plugins", "kubernetes.io", "flexvolume", driver, "mounts", volumeName)
}

// checkName says why a directory cannot be a driver's. Kubernetes wants at most one vendor before the driver.
func checkName(directory string) error {
	vendor, driver, qualified := strings.Cut(directory, "~")
	if qualified && (vendor == "" || driver == "" || strings.Contains(driver, "~")) {
		return fmt.Errorf("read driver directory %q: its name is not <vendor>~<driver>; rename it", directory)
	}
	return nil
}
