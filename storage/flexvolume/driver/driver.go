// Package driver builds a FlexVolume driver from a few functions. It is for driver authors and
// depends only on the standard library. The drivers run on every platform with FlexVolumes:
// Slipway, OpenShift 3 and Kubernetes.
//
// This is a complete driver, whose volumes are directories of the host:
//
//	func main() {
//		driver.Main(driver.Driver{
//			Mount: func(dir string, o driver.Options) error {
//				source := filepath.Join("/srv/volumes", filepath.Base(o.Volume))
//				if err := os.MkdirAll(source, 0o755); err != nil {
//					return err
//				}
//				return driver.Bind(source, dir, o.ReadOnly)
//			},
//			Unmount: driver.Unmount,
//		})
//	}
//
// Every function must succeed if its work is already done, because Kubernetes repeats calls whose
// result it does not know. A function can also be called after an earlier call was killed at any
// point. IsMounted, Bind and Unmount handle this.
//
// Each operation executes the driver again, as root, in the directory "/", without standard input.
// Output to os.Stdout goes to standard error, because standard output carries the response. Unlike
// Slipway, Kubernetes reads both streams as the response, so a driver for Kubernetes must print
// nothing.
package driver

import (
	"fmt"
	"io"
	"os"
)

// Driver is the set of operations that a driver supports. If a function is nil, the response is
// "Not supported", and Kubernetes skips the operation or implements it: it formats and mounts a
// device, bind-mounts what MountDevice mounted, or unmounts.
//
// A driver with Attach, Detach, WaitForAttach or IsAttached reports that it is attachable. It
// should have both Attach and Detach, and either MountDevice and UnmountDevice, or a device from
// WaitForAttach. Any other driver must have Mount and Unmount.
type Driver struct {
	// Init prepares the driver on a node. It can run concurrently with any other operation. It can be
	// nil.
	Init func() error

	// VolumeName returns the name of the volume in its storage, which is unique and the same on
	// every node. Detach gets it with "~" instead of "/".
	VolumeName func(o Options) (string, error)
	// Attach attaches the volume to a node. It can run on another host, so it gets only the node's
	// name. It returns the device on the node, or "" if it is unknown.
	Attach func(o Options, node string) (device string, err error)
	// WaitForAttach runs on the node. It waits for the device and returns it. device is the result
	// of Attach.
	WaitForAttach func(device string, o Options) (string, error)
	// IsAttached reports whether the volume is attached to the node.
	IsAttached func(o Options, node string) (bool, error)
	// Detach undoes Attach. volumeName is the result of VolumeName. Unlike Slipway, Kubernetes
	// passes the PersistentVolume's name.
	Detach func(volumeName, node string) error

	// MountDevice mounts the device at dir, which exists, for all pods on the node.
	MountDevice func(dir, device string, o Options) error
	// UnmountDevice undoes MountDevice.
	UnmountDevice func(dir string) error

	// Mount mounts the volume at dir, which exists, for one pod. Only the options of Mount contain the
	// pod, its secret and its group.
	Mount func(dir string, o Options) error
	// Unmount undoes Mount. It is also called if nothing is mounted.
	Unmount func(dir string) error

	// ExpandVolume expands the volume in its storage and returns its new size. Sizes are in bytes. dir
	// is the directory where the device is mounted, if it is mounted on this node. Unlike Slipway,
	// Kubernetes does not call ExpandVolume.
	ExpandVolume func(o Options, dir string, newSize, oldSize int64) (int64, error)
	// ExpandFS expands the file system of the device, which is mounted at dir, to the size of the
	// volume.
	ExpandFS func(o Options, device, dir string, newSize, oldSize int64) error

	// KeepOwnership means that the group of files is not changed to the pod's fsGroup, because the
	// storage does not support groups or Mount has set them.
	KeepOwnership bool
	// KeepLabel means that files are not relabeled for SELinux, because the storage has no labels
	// or sets them on mount.
	KeepLabel bool
	// ReportUsage means that the usage of the file system at the volume's directory is the volume's
	// usage, which is reported as metrics.
	ReportUsage bool
}

// Main runs the operation that the command line names, prints the response and exits: with 0 for
// success, else with 1.
func Main(d Driver) {
	stdout := os.Stdout
	os.Stdout = os.Stderr
	os.Exit(d.Run(os.Args[1:], stdout))
}

// Run runs the operation args[0], writes the response to out and returns the exit code.
func (d Driver) Run(args []string, out io.Writer) (code int) {
	resp := response{Status: statusNotSupported}
	if len(args) == 0 {
		resp = failure(fmt.Errorf("usage: %s OPERATION [ARGUMENT...]", os.Args[0]), nil)
	} else if op, ok := d.operations()[args[0]]; ok && op.supported {
		resp = op.run(args[1:])
	}
	if err := resp.write(out); err != nil {
		return 1
	}
	if resp.Status != statusSuccess {
		return 1
	}
	return 0
}
