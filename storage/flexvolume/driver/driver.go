// Package driver makes a FlexVolume driver out of a few functions. It is for authors of drivers, needs nothing but the standard library, and
// what is made with it runs wherever FlexVolume drivers do: on Slipway, OpenShift 3 and Kubernetes.
//
// This is a whole driver, whose volumes are directories of the machine:
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
// Every function may be called again for what it has done already, and must then succeed: Kubernetes repeats what it does not know the
// end of. It may be called after a call that was killed anywhere. IsMounted, Bind and Unmount help with this.
//
// A driver is executed anew for each operation, as root, in the directory "/", without standard input. What it prints to os.Stdout goes
// to standard error, because standard output carries the answer; Kubernetes itself, other than Slipway, reads both as the answer, so a driver that
// is to run there prints nothing.
package driver

import (
	"fmt"
	"io"
	"os"
)

// Driver is what a driver can do. An operation whose function is nil is answered with "Not supported", which has Kubernetes do without it or
// do it itself: format and mount a device, bind what MountDevice mounted, unmount.
//
// A driver with any of Attach, Detach, WaitForAttach and IsAttached says that it is attachable; it should have the first two, and MountDevice
// with UnmountDevice or a device from WaitForAttach. Any other driver must have Mount and Unmount.
type Driver struct {
	// Init gets the driver ready on a machine. It may run beside any other operation. Nil: there is nothing to do.
	Init func() error

	// VolumeName is the name of the volume in its storage, the same on every machine and another one for each volume. Detach gets it,
	// with "~" for each "/".
	VolumeName func(o Options) (string, error)
	// Attach makes the volume available to a node, of which only the name is known: it runs on another machine. It returns the device there
	// if it is known, or "".
	Attach func(o Options, node string) (device string, err error)
	// WaitForAttach waits on the node until the device is there and returns it. device is what Attach returned.
	WaitForAttach func(device string, o Options) (string, error)
	// IsAttached says whether the volume is attached to the node.
	IsAttached func(o Options, node string) (bool, error)
	// Detach undoes Attach. volumeName is the answer of VolumeName; Kubernetes itself, other than Slipway, gives the
	// PersistentVolume's name.
	Detach func(volumeName, node string) error

	// MountDevice mounts the device at dir, which exists, for all pods of the node.
	MountDevice func(dir, device string, o Options) error
	// UnmountDevice undoes MountDevice.
	UnmountDevice func(dir string) error

	// Mount makes the volume appear at dir, which exists, for one pod. Only here the options tell of the pod, its secret and its group.
	Mount func(dir string, o Options) error
	// Unmount undoes Mount. It is called also where nothing is mounted.
	Unmount func(dir string) error

	// ExpandVolume makes the volume larger in its storage and returns its new size. Sizes are in bytes. dir is where the device is mounted, on a
	// machine where it is. Kubernetes itself, other than Slipway, does not call it.
	ExpandVolume func(o Options, dir string, newSize, oldSize int64) (int64, error)
	// ExpandFS makes the file system of the device, which is mounted at dir, as large as the volume.
	ExpandFS func(o Options, device, dir string, newSize, oldSize int64) error

	// KeepOwnership: files are not given to the pod's fsGroup, because the storage does not let them or Mount has done so.
	KeepOwnership bool
	// KeepLabel: files are not relabelled for SELinux, because the storage has no labels or sets them at mount.
	KeepLabel bool
	// ReportUsage: the usage of the file system at the volume's directory is that of the volume alone and is shown as metrics.
	ReportUsage bool
}

// Main runs the operation that the command line asks for, prints the answer and ends the process: with 0 for success, else with 1.
func Main(d Driver) {
	answers := os.Stdout
	os.Stdout = os.Stderr
	os.Exit(d.Run(os.Args[1:], answers))
}

// Run is Main without the process: it runs the operation args[0], writes the answer to out and returns the exit code.
func (d Driver) Run(args []string, out io.Writer) (code int) {
	a := answer{Status: notSupported}
	if len(args) == 0 {
		a = failure(fmt.Errorf("usage: %s OPERATION [ARGUMENT...]", os.Args[0]), nil)
	} else if op, known := d.operations()[args[0]]; known && op.has {
		a = op.run(args[1:])
	}
	if err := a.write(out); err != nil {
		return 1
	}
	if a.Status != success {
		return 1
	}
	return 0
}
