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

// NodeStageVolume attaches a volume's device and mounts its file system at the staging path.
func (d *Driver) NodeStageVolume(ctx context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	handle, dir, capability := request.GetVolumeId(), request.GetStagingTargetPath(), request.GetVolumeCapability()
	if handle == "" || dir == "" || capability == nil {
		return nil, status.Error(codes.InvalidArgument, "the volume ID, the staging path or the capability is missing")
	}
	file, v, release, err := d.lockVolume(handle)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := checkCapability(v, capability); err != nil {
		return nil, err
	}
	if capability.GetBlock() != nil {
		device, err := d.attach(file, v)
		if err != nil {
			return nil, err
		}
		return &csi.NodeStageVolumeResponse{}, device.Close()
	}
	return &csi.NodeStageVolumeResponse{}, d.mount(ctx, file, v, dir, capability)
}

// checkCapability checks that a volume supports a capability.
func checkCapability(v volume, capability *csi.VolumeCapability) error {
	content, err := contentOf([]*csi.VolumeCapability{capability})
	if err != nil {
		return err
	}
	if capability.GetMount() != nil && capability.GetMount().GetFsType() == "" && v.Filesystem != "" {
		content = v.Filesystem // the request accepts any file system
	}
	if content != v.Filesystem {
		return status.Errorf(codes.InvalidArgument, "%s is requested, but the volume is %s", describeContent(content), describeContent(v.Filesystem))
	}
	return nil
}

// attach returns the volume's device, whose size is the volume's size. It attaches the device if
// necessary.
func (d *Driver) attach(file string, v volume) (*os.File, error) {
	path := d.volumes.image(file)
	if err := image.Grow(path, v.Size); err != nil { // completes an interrupted expansion
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

// mount mounts a volume's file system at a directory and expands the file system to the volume's
// size.
func (d *Driver) mount(ctx context.Context, file string, v volume, dir string, capability *csi.VolumeCapability) error {
	err := d.tryMount(ctx, file, v, dir, capability)
	if !errors.Is(err, filesystem.ErrMounted) {
		return err
	}
	if err := filesystem.Unmount(dir); err != nil {
		return err
	}
	if err := d.expandOffline(ctx, file, v); err != nil {
		return err
	}
	return d.tryMount(ctx, file, v, dir, capability)
}

func (d *Driver) tryMount(ctx context.Context, file string, v volume, dir string, capability *csi.VolumeCapability) error {
	device, err := d.attach(file, v)
	if err != nil {
		return err
	}
	defer device.Close()
	options := slices.Clone(capability.GetMount().GetMountFlags())
	if isReadOnly(capability) {
		options = append(options, "ro")
	}
	if complete, err := isMounted(device.Name(), dir, isReadOnly(capability)); err != nil || complete {
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

// isMounted reports whether a device is mounted at path in the expected mode. Any other mount at
// path is an error.
func isMounted(device, path string, readOnly bool) (bool, error) {
	mounts, err := filesystem.MountsAt(path)
	if err != nil || len(mounts) == 0 {
		return false, err
	}
	matches, err := filesystem.MatchDevice(device)
	if err != nil {
		return false, err
	}
	top := mounts[len(mounts)-1]
	if !matches(top) {
		return false, status.Errorf(codes.FailedPrecondition, "something else is mounted at %q: %s", path, top.Source)
	}
	if readOnly && !hasOption(top.Options, "ro") {
		return false, status.Errorf(codes.AlreadyExists, "the volume is mounted at %q in read-write mode", path)
	}
	return true, nil
}

// hasOption reports whether a comma-separated list of mount options contains an option.
func hasOption(options, option string) bool {
	return slices.Contains(strings.Split(options, ","), option)
}

// isShutDown reports whether the kernel has stopped writing to a mounted file system because of an
// error. An ext4 file system either becomes read-only although its mount is read-write, or shows
// the shutdown in its options. An xfs file system shows the shutdown in its options.
func isShutDown(m *mountinfo.Info) bool {
	return filesystem.Type(m.FSType).Supported() &&
		(hasOption(m.VFSOptions, "emergency_ro") || hasOption(m.VFSOptions, "shutdown") || hasOption(m.VFSOptions, "ro") && hasOption(m.Options, "rw"))
}

// NodeUnstageVolume unmounts a volume and detaches its device.
func (d *Driver) NodeUnstageVolume(ctx context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	handle, dir := request.GetVolumeId(), request.GetStagingTargetPath()
	if handle == "" || dir == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume ID or the staging path is missing")
	}
	release, err := d.locks.acquire(handle)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := filesystem.Unmount(dir); err != nil {
		return nil, err
	}
	file, err := d.localFile(handle)
	if err != nil || file == "" {
		return &csi.NodeUnstageVolumeResponse{}, err
	}
	// The kernel detaches a file system's device with its last mount. Therefore, a remaining device
	// either belongs to a raw block volume or is still in use by another mount namespace. Detach it
	// regardless of the record, because the record might have changed.
	image := d.volumes.image(file)
	device, err := loop.Find(image)
	if err != nil || device == "" {
		return &csi.NodeUnstageVolumeResponse{}, err
	}
	if err := loop.Detach(device); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, waitForDetach(ctx, image)
}

// detachTimeout is the maximum time to wait for a device to be detached.
const detachTimeout = 10 * time.Second

// waitForDetach waits until the device of an image is detached. A starting container has the host's
// mounts in its own mount namespace until it unmounts them, and a volume that has a device cannot
// be deleted. If the device is in use, it remains attached until its last user closes it.
func waitForDetach(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, detachTimeout)
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
