package local

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/moby/sys/mountinfo"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/image"
	"github.com/slipway-platform/slipway/storage/local/loop"
)

// NodeStageVolume attaches a volume, and mounts what is in it at the staging path.
func (d *Driver) NodeStageVolume(ctx context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	handle, dir, wanted := request.GetVolumeId(), request.GetStagingTargetPath(), request.GetVolumeCapability()
	if handle == "" || dir == "" || wanted == nil {
		return nil, status.Error(codes.InvalidArgument, "a volume, a staging path and a capability must be given")
	}
	file, v, release, err := d.turn(handle)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := suits(v, wanted); err != nil {
		return nil, err
	}
	if wanted.GetBlock() != nil {
		device, err := d.attach(file, v)
		if err != nil {
			return nil, err
		}
		return &csi.NodeStageVolumeResponse{}, device.Close()
	}
	return &csi.NodeStageVolumeResponse{}, d.mount(ctx, file, v, dir, wanted)
}

// suits checks that a volume can be used with a capability.
func suits(v volume, wanted *csi.VolumeCapability) error {
	content, err := contentOf([]*csi.VolumeCapability{wanted})
	if err != nil {
		return err
	}
	if wanted.GetMount() != nil && wanted.GetMount().GetFsType() == "" && v.Filesystem != "" {
		content = v.Filesystem // any will do
	}
	if content != v.Filesystem {
		return status.Errorf(codes.InvalidArgument, "%s is asked for, and it is %s", describe(content), describe(v.Filesystem))
	}
	return nil
}

// attach makes the volume's device, or finds it, with the size of the volume.
func (d *Driver) attach(file string, v volume) (*os.File, error) {
	path := d.volumes.image(file)
	if err := image.Grow(path, v.Size); err != nil { // if an expansion was broken off
		return nil, err
	}
	device, err := loop.Open(path)
	if err != nil {
		return nil, err
	}
	if device != nil {
		if err := loop.Refresh(device); err != nil {
			device.Close()
			return nil, err
		}
		return device, nil
	}
	return loop.Attach(path, v.Filesystem != "")
}

// mount mounts a volume's file system at a directory, and lets it grow if it is smaller than the volume.
func (d *Driver) mount(ctx context.Context, file string, v volume, dir string, wanted *csi.VolumeCapability) error {
	err := d.tryMount(ctx, file, v, dir, wanted)
	if !errors.Is(err, filesystem.ErrMounted) {
		return err
	}
	if err := filesystem.Unmount(dir); err != nil {
		return err
	}
	if err := d.growImage(ctx, file, v); err != nil {
		return err
	}
	return d.tryMount(ctx, file, v, dir, wanted)
}

func (d *Driver) tryMount(ctx context.Context, file string, v volume, dir string, wanted *csi.VolumeCapability) error {
	device, err := d.attach(file, v)
	if err != nil {
		return err
	}
	defer device.Close()
	options := slices.Clone(wanted.GetMount().GetMountFlags())
	if reads(wanted) {
		options = append(options, "ro")
	}
	if done, err := isMounted(device.Name(), dir, reads(wanted)); err != nil || done {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if err := filesystem.Check(ctx, v.Filesystem, device.Name()); err != nil {
		return err
	}
	if err := filesystem.Mount(v.Filesystem, device.Name(), dir, options); err != nil || slices.Contains(options, "ro") {
		return err
	}
	return filesystem.Grow(v.Filesystem, dir, device)
}

// isMounted tells whether a device is mounted at path as it should be. Another mount there is an error.
func isMounted(device, path string, readOnly bool) (bool, error) {
	mounts, err := filesystem.At(path)
	if err != nil || len(mounts) == 0 {
		return false, err
	}
	matches, err := filesystem.IsOf(device)
	if err != nil {
		return false, err
	}
	top := mounts[len(mounts)-1]
	if !matches(top) {
		return false, status.Errorf(codes.FailedPrecondition, "something else is mounted at %q: %s", path, top.Source)
	}
	if readOnly && !has(top.Options, "ro") {
		return false, status.Errorf(codes.AlreadyExists, "the volume is mounted at %q, for writing", path)
	}
	return true, nil
}

// has finds an option in a list as the mount table has it.
func has(options, option string) bool { return slices.Contains(strings.Split(options, ","), option) }

// stopped tells whether the kernel has stopped writing to a mounted file system because of an error. An ext4 turns read-only below a
// mount that is not, or says so in its options; an xfs is shut down.
func stopped(m *mountinfo.Info) bool {
	return filesystem.Type(m.FSType).Known() &&
		(has(m.VFSOptions, "emergency_ro") || has(m.VFSOptions, "shutdown") || has(m.VFSOptions, "ro") && has(m.Options, "rw"))
}

// NodeUnstageVolume unmounts a volume, and ends its device.
func (d *Driver) NodeUnstageVolume(ctx context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	handle, dir := request.GetVolumeId(), request.GetStagingTargetPath()
	if handle == "" || dir == "" {
		return nil, status.Error(codes.InvalidArgument, "a volume and its staging path must be given")
	}
	release, err := d.busy.take(handle)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := filesystem.Unmount(dir); err != nil {
		return nil, err
	}
	file, err := d.here(handle)
	if err != nil || file == "" {
		return &csi.NodeUnstageVolumeResponse{}, err
	}
	// The device of a file system has ended with its mount. This is that of a raw block volume, whatever its record says by now, or one
	// that another mount namespace holds.
	image := d.volumes.image(file)
	device, err := loop.Find(image)
	if err != nil || device == "" {
		return &csi.NodeUnstageVolumeResponse{}, err
	}
	if err := loop.Detach(device); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, awaitEnd(ctx, image)
}

// heldAtMost is how long the end of a device is waited for.
const heldAtMost = 10 * time.Second

// awaitEnd gives the device of an image the time to end: a container that starts has the mounts of the host in its own namespace until it
// lets go of them, and a volume that has a device is not deleted. One that somebody uses stays; it ends with its last user.
func awaitEnd(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, heldAtMost)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		device, err := loop.Find(image)
		if err != nil || device == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
