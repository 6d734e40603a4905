package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Driver calls one version of one driver. Its methods are safe for concurrent use. A call ends at
// the operation's deadline or when ctx is done, whichever comes first. If the driver is still
// running, its process group is killed.
//
// The error of a call is ErrNotSupported, ErrGone, a CallError for a driver failure, or an error
// about the input.
type Driver struct {
	name            string
	path            string // the executable; "" if the driver no longer exists
	version         string
	settings        Settings
	caps            Capabilities
	limiter         *callLimiter
	observer        Observer
	unsupported     *unsupportedOps
	runningCallsDir string // directory for the records of running calls, or ""
	failureFile     string // file that records the last failed call, or ""
	history         *history
}

// NewDriver returns the driver "vendor/driver" with the executable at path, for callers without a
// Registry. Until Init is called, the driver has the default capabilities.
func NewDriver(name, path string, settings Settings) *Driver {
	return &Driver{
		name: name, path: path, settings: settings, caps: DefaultCapabilities(),
		limiter: newCallLimiter(settings.Concurrency), unsupported: &unsupportedOps{}, observer: noopObserver{},
	}
}

// Name returns "vendor/driver", or "driver" if there is no vendor.
func (d *Driver) Name() string { return d.name }

// Version returns the SHA-256 of the executable in hexadecimal, or "" if it is unknown.
func (d *Driver) Version() string { return d.version }

// Capabilities returns the capabilities that the driver reported on init.
func (d *Driver) Capabilities() Capabilities { return d.caps }

// Timeout returns the timeout of an operation's calls.
func (d *Driver) Timeout(op Operation) time.Duration { return d.settings.timeout(op) }

// Unsupported reports whether this driver version has returned "Not supported" for op.
func (d *Driver) Unsupported(op Operation) bool { return d.unsupported.has(op) }

// Init initializes the driver and stores its capabilities. It must not run concurrently with other
// calls.
func (d *Driver) Init(ctx context.Context) (Capabilities, error) {
	resp, err := d.call(ctx, call{op: OpInit})
	if err != nil {
		return Capabilities{}, err
	}
	d.caps = resp.capabilities()
	return d.caps, nil
}

// VolumeName returns the volume's name in its storage, for use as the argument of Detach. The name
// is the same on every node. The interface requires that "/" in the name be replaced with "~". If
// the driver returns no name or Settings.VolumeName is NamingVolume, the result is Volume.Name, and
// named is false.
func (d *Driver) VolumeName(ctx context.Context, volume Volume) (name string, named bool, err error) {
	input, err := volume.json()
	if err != nil {
		return "", false, err
	}
	resp, err := d.call(ctx, call{op: OpGetVolumeName, args: []string{input}})
	switch {
	case errors.Is(err, ErrNotSupported):
		return volume.Name, false, nil
	case err != nil:
		return "", false, err
	case resp.VolumeName == "" || d.settings.VolumeName == NamingVolume:
		return volume.Name, false, nil
	}
	name = strings.ReplaceAll(resp.VolumeName, "/", "~")
	// The name is used as a directory name.
	if name == "." || name == ".." || len(name) > 255 || strings.ContainsFunc(name, unicode.IsControl) {
		return "", false, d.fail(OpGetVolumeName, KindWrongType,
			fmt.Sprintf("it returned the name %q, which is not a valid directory name", clip(name)), nil)
	}
	d.limiter.setVolumeID(name, volume.id())
	return name, true, nil
}

// Attach attaches the volume to a node. It returns the device on this node, or "" if the driver
// does not return a device.
func (d *Driver) Attach(ctx context.Context, volume Volume, node string) (device string, err error) {
	input, err := volume.json()
	if err != nil {
		return "", err
	}
	resp, err := d.call(ctx, call{op: OpAttach, volume: volume.id(), args: []string{input, node}})
	return resp.Device, err
}

// WaitForAttach waits for the volume's device and returns the device. It runs on the node. device
// is the result of Attach.
func (d *Driver) WaitForAttach(ctx context.Context, device string, volume Volume) (string, error) {
	input, err := volume.json()
	if err != nil {
		return "", err
	}
	resp, err := d.call(ctx, call{op: OpWaitForAttach, volume: volume.id(), args: []string{device, input}})
	return resp.Device, err
}

// IsAttached reports whether the volume is attached to the node.
func (d *Driver) IsAttached(ctx context.Context, volume Volume, node string) (bool, error) {
	input, err := volume.json()
	if err != nil {
		return false, err
	}
	resp, err := d.call(ctx, call{op: OpIsAttached, volume: volume.id(), args: []string{input, node}})
	return resp.Attached, err
}

// Detach detaches the volume from the node. volumeName is the result of VolumeName.
func (d *Driver) Detach(ctx context.Context, volumeName, node string) error {
	_, err := d.call(ctx, call{op: OpDetach, volume: d.limiter.volumeID(volumeName), args: []string{volumeName, node}})
	if err == nil {
		d.limiter.deleteVolumeID(volumeName)
	}
	return err
}

// MountDevice mounts the device at dir, for all pods on the node.
func (d *Driver) MountDevice(ctx context.Context, dir, device string, volume Volume) error {
	input, err := volume.json()
	if err != nil {
		return err
	}
	d.limiter.setVolumeID(dir, volume.id())
	_, err = d.call(ctx, call{op: OpMountDevice, volume: volume.id(), args: []string{dir, device, input}})
	return err
}

// UnmountDevice undoes MountDevice.
func (d *Driver) UnmountDevice(ctx context.Context, dir string) error {
	_, err := d.call(ctx, call{op: OpUnmountDevice, volume: d.limiter.volumeID(dir), args: []string{dir}})
	if err == nil {
		d.limiter.deleteVolumeID(dir)
	}
	return err
}

// Mount mounts the volume at dir, for one pod.
func (d *Driver) Mount(ctx context.Context, dir string, mounting MountRequest) error {
	input, err := mounting.json()
	if err != nil {
		return err
	}
	d.limiter.setVolumeID(dir, mounting.id())
	_, err = d.call(ctx, call{op: OpMount, volume: mounting.id(), args: []string{dir, input}, secrets: mounting.Secrets})
	return err
}

// Unmount undoes Mount.
func (d *Driver) Unmount(ctx context.Context, dir string) error {
	_, err := d.call(ctx, call{op: OpUnmount, volume: d.limiter.volumeID(dir), args: []string{dir}})
	if err == nil {
		d.limiter.deleteVolumeID(dir)
	}
	return err
}

// ExpandVolume expands the volume in its storage. Sizes are in bytes. It returns the size that the
// driver reports, or newSize if the driver does not report a size.
func (d *Driver) ExpandVolume(ctx context.Context, volume Volume, dir string, newSize, oldSize int64) (int64, error) {
	input, err := volume.json()
	if err != nil {
		return 0, err
	}
	resp, err := d.call(ctx, call{op: OpExpandVolume, volume: volume.id(),
		args: []string{input, dir, strconv.FormatInt(newSize, 10), strconv.FormatInt(oldSize, 10)}})
	if err == nil && resp.VolumeNewSize == 0 {
		return newSize, nil
	}
	return resp.VolumeNewSize, err
}

// ExpandFS expands the file system that is mounted at dir to the size of its device. Sizes are in
// bytes.
func (d *Driver) ExpandFS(ctx context.Context, volume Volume, device, dir string, newSize, oldSize int64) error {
	input, err := volume.json()
	if err != nil {
		return err
	}
	_, err = d.call(ctx, call{op: OpExpandFS, volume: volume.id(),
		args: []string{input, device, dir, strconv.FormatInt(newSize, 10), strconv.FormatInt(oldSize, 10)}})
	return err
}
