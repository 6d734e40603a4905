package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Driver calls one version of one driver. Its methods are safe for concurrent use and end at the operation's deadline, or when
// ctx ends, whichever comes first; a driver that does not end by itself is killed with its process group.
//
// Errors: ErrNotSupported, ErrGone, a CallError for everything that the driver did, or an error about the input.
type Driver struct {
	name     string
	path     string // of the executable; "" for a driver that is gone
	version  string
	settings Settings
	caps     Capabilities
	gate     *gate
	observer Observer
	lacks    *lacks
	running  string // directory in which running calls are noted, or empty
	failures string // file in which the last failed call is noted, or empty
}

// NewDriver is the driver of that name, "vendor/driver", whose executable is at path. It is for callers without a Registry; its
// capabilities are the default ones until Init has been called.
func NewDriver(name, path string, settings Settings) *Driver {
	return &Driver{
		name: name, path: path, settings: settings, caps: DefaultCapabilities(),
		gate: newGate(settings.Concurrency), lacks: &lacks{}, observer: unobserved{},
	}
}

// Name is "vendor/driver", or "driver" without a vendor.
func (d *Driver) Name() string { return d.name }

// Version is the SHA-256 of the executable in hexadecimal, or "" where it is not known.
func (d *Driver) Version() string { return d.version }

// Capabilities are what the driver said on init.
func (d *Driver) Capabilities() Capabilities { return d.caps }

// Lacks says whether this version of the driver has answered the operation with "Not supported".
func (d *Driver) Lacks(op Operation) bool { return d.lacks.has(op) }

// Init asks the driver to get ready and for its capabilities, which are remembered. It must not run beside other calls.
func (d *Driver) Init(ctx context.Context) (Capabilities, error) {
	said, err := d.call(ctx, call{op: OpInit})
	if err != nil {
		return Capabilities{}, err
	}
	d.caps = said.capabilities()
	return d.caps, nil
}

// VolumeName asks for the name of the volume in its storage, which Detach takes; it is the same on every machine. "/" in it is
// replaced by "~", as the interface says. A driver that has no answer, or may not have one by its settings, gets Volume.Name.
func (d *Driver) VolumeName(ctx context.Context, volume Volume) (string, error) {
	input, err := volume.json()
	if err != nil {
		return "", err
	}
	said, err := d.call(ctx, call{op: OpGetVolumeName, args: []string{input}})
	switch {
	case errors.Is(err, ErrNotSupported):
		return volume.Name, nil
	case err != nil:
		return "", err
	case said.VolumeName == "" || d.settings.VolumeName == NamingVolume:
		return volume.Name, nil
	}
	name := strings.ReplaceAll(said.VolumeName, "/", "~")
	// It becomes a directory's name.
	if name == "." || name == ".." || len(name) > 255 || strings.ContainsFunc(name, unicode.IsControl) {
		return "", d.fail(OpGetVolumeName, KindWrongType,
			fmt.Sprintf("it answered with the name %q, which no directory can have", clip(name)), nil)
	}
	d.gate.remember(name, volume.id())
	return name, nil
}

// Attach makes the volume available to a node. It returns the device there, or "" where it is not known yet.
func (d *Driver) Attach(ctx context.Context, volume Volume, node string) (device string, err error) {
	input, err := volume.json()
	if err != nil {
		return "", err
	}
	said, err := d.call(ctx, call{op: OpAttach, volume: volume.id(), args: []string{input, node}})
	return said.Device, err
}

// WaitForAttach waits on the node until the volume's device is there, and returns it. device is what Attach returned.
func (d *Driver) WaitForAttach(ctx context.Context, device string, volume Volume) (string, error) {
	input, err := volume.json()
	if err != nil {
		return "", err
	}
	said, err := d.call(ctx, call{op: OpWaitForAttach, volume: volume.id(), args: []string{device, input}})
	return said.Device, err
}

// IsAttached asks whether the volume is attached to the node.
func (d *Driver) IsAttached(ctx context.Context, volume Volume, node string) (bool, error) {
	input, err := volume.json()
	if err != nil {
		return false, err
	}
	said, err := d.call(ctx, call{op: OpIsAttached, volume: volume.id(), args: []string{input, node}})
	return said.Attached, err
}

// Detach takes the volume of that name, from VolumeName, away from the node.
func (d *Driver) Detach(ctx context.Context, volumeName, node string) error {
	_, err := d.call(ctx, call{op: OpDetach, volume: d.gate.identify(volumeName), args: []string{volumeName, node}})
	if err == nil {
		d.gate.forget(volumeName)
	}
	return err
}

// MountDevice mounts the device at dir, for all pods of the node.
func (d *Driver) MountDevice(ctx context.Context, dir, device string, volume Volume) error {
	input, err := volume.json()
	if err != nil {
		return err
	}
	d.gate.remember(dir, volume.id())
	_, err = d.call(ctx, call{op: OpMountDevice, volume: volume.id(), args: []string{dir, device, input}})
	return err
}

// UnmountDevice undoes MountDevice.
func (d *Driver) UnmountDevice(ctx context.Context, dir string) error {
	_, err := d.call(ctx, call{op: OpUnmountDevice, volume: d.gate.identify(dir), args: []string{dir}})
	if err == nil {
		d.gate.forget(dir)
	}
	return err
}

// Mount makes the volume appear at dir, for one pod.
func (d *Driver) Mount(ctx context.Context, dir string, mounting Mounting) error {
	input, err := mounting.json()
	if err != nil {
		return err
	}
	d.gate.remember(dir, mounting.id())
	_, err = d.call(ctx, call{op: OpMount, volume: mounting.id(), args: []string{dir, input}, secrets: mounting.Secrets})
	return err
}

// Unmount undoes Mount.
func (d *Driver) Unmount(ctx context.Context, dir string) error {
	_, err := d.call(ctx, call{op: OpUnmount, volume: d.gate.identify(dir), args: []string{dir}})
	if err == nil {
		d.gate.forget(dir)
	}
	return err
}

// ExpandVolume makes the volume larger in its storage; sizes are in bytes. It returns the size that the driver reports, or
// newSize where it reports none.
func (d *Driver) ExpandVolume(ctx context.Context, volume Volume, dir string, newSize, oldSize int64) (int64, error) {
	input, err := volume.json()
	if err != nil {
		return 0, err
	}
	said, err := d.call(ctx, call{op: OpExpandVolume, volume: volume.id(),
		args: []string{input, dir, strconv.FormatInt(newSize, 10), strconv.FormatInt(oldSize, 10)}})
	if err == nil && said.VolumeNewSize == 0 {
		return newSize, nil
	}
	return said.VolumeNewSize, err
}

// ExpandFS makes the file system of the device that is mounted at dir fill it; sizes are in bytes.
func (d *Driver) ExpandFS(ctx context.Context, volume Volume, device, dir string, newSize, oldSize int64) error {
	input, err := volume.json()
	if err != nil {
		return err
	}
	_, err = d.call(ctx, call{op: OpExpandFS, volume: volume.id(),
		args: []string{input, device, dir, strconv.FormatInt(newSize, 10), strconv.FormatInt(oldSize, 10)}})
	return err
}
