// Package driver builds a FlexVolume driver from a few functions. It is intended for driver authors
// and depends only on the standard library. The drivers run on every platform that supports
// FlexVolumes: Slipway, OpenShift 3 and Kubernetes.
//
// This is a complete driver, whose volumes are host directories:
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
// Every function must be idempotent, because Kubernetes repeats calls whose result is unknown. A
// function can also be called after an earlier call was killed at any point. IsMounted, Bind and
// Unmount work correctly in both cases.
//
// Each operation executes the driver again, as root, in the root directory, without standard input.
// Output to os.Stdout is redirected to standard error, because standard output is reserved for the
// response. Unlike Slipway, Kubernetes reads both streams as the response, so a driver for
// Kubernetes must not print anything.
package driver

import (
	"fmt"
	"io"
	"os"
)

// Driver is the set of operations that a driver supports. If a function is nil, the response is
// "Not supported", and Kubernetes skips the operation or implements it itself. For example,
// Kubernetes formats and mounts a device, bind-mounts the directory of MountDevice, or unmounts a
// directory.
//
// A driver with Attach, Detach, WaitForAttach or IsAttached reports that it is attachable. It
// should have both Attach and Detach. It should also have either MountDevice and UnmountDevice, or
// a WaitForAttach that returns a device. Any other driver must have Mount and Unmount.
type Driver struct {
	// Init, if not nil, prepares the driver on a node. It can run concurrently with any other
	// operation.
	Init func() error

	// VolumeName returns the volume's name in its storage. The name must be unique, and the same on
	// every node. Detach receives the name with "~" instead of "/".
	VolumeName func(o Options) (string, error)
	// Attach attaches the volume to a node. It can run on another host, so it receives only the
	// node's name. It returns the device on the node, or "" if the device is unknown.
	Attach func(o Options, node string) (device string, err error)
	// WaitForAttach waits for the device and returns the device. It runs on the node. device is the
	// result of Attach.
	WaitForAttach func(device string, o Options) (string, error)
	// IsAttached reports whether the volume is attached to the node.
	IsAttached func(o Options, node string) (bool, error)
	// Detach undoes Attach. volumeName is the result of VolumeName. Unlike Slipway, Kubernetes
	// passes the PersistentVolume's name.
	Detach func(volumeName, node string) error

	// MountDevice mounts the device at dir, for all pods on the node. dir exists.
	MountDevice func(dir, device string, o Options) error
	// UnmountDevice undoes MountDevice.
	UnmountDevice func(dir string) error

	// Mount mounts the volume at dir, for one pod. dir exists. Only the options of Mount contain
	// the pod, its secret and its group.
	Mount func(dir string, o Options) error
	// Unmount undoes Mount. It is also called if nothing is mounted.
	Unmount func(dir string) error

	// ExpandVolume expands the volume in its storage and returns its new size. Sizes are in bytes.
	// dir is the directory at which the device is mounted, if the device is mounted on this node.
	// Unlike Slipway, Kubernetes does not call ExpandVolume.
	ExpandVolume func(o Options, dir string, newSize, oldSize int64) (int64, error)
	// ExpandFS expands the file system on the device, which is mounted at dir, to the volume's
	// size.
	ExpandFS func(o Options, device, dir string, newSize, oldSize int64) error

	// KeepOwnership prevents Kubernetes from changing the files' group to the pod's fsGroup. Set it
	// if the storage does not support groups or if Mount sets the group.
	KeepOwnership bool
	// KeepLabel prevents relabeling of the files for SELinux. Set it if the storage has no labels
	// or sets them on mount.
	KeepLabel bool
	// ReportUsage reports the usage of the file system at the volume's directory in metrics. Set it
	// if this usage is the volume's usage.
	ReportUsage bool
}

// Main runs the operation that is given on the command line, prints the response and exits: with 0
// for success, otherwise with 1.
func Main(d Driver) {
	stdout := os.Stdout
	os.Stdout = os.Stderr
	os.Exit(d.Run(os.Args[1:], stdout))
}

// Run runs the operation that args[0] names, writes the response to out, and returns the exit code.
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
