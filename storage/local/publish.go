package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/loop"
)

// NodePublishVolume publishes a staged volume, or creates and publishes an ephemeral volume, at a
// pod's path.
func (d *Driver) NodePublishVolume(ctx context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	handle, target, capability := request.GetVolumeId(), request.GetTargetPath(), request.GetVolumeCapability()
	if handle == "" || target == "" || capability == nil {
		return nil, status.Error(codes.InvalidArgument, "the volume ID, the target path or the capability is missing")
	}
	release, err := d.locks.acquire(handle)
	if err != nil {
		return nil, err
	}
	defer release()
	if request.GetVolumeContext()[ephemeralKey] == "true" {
		return &csi.NodePublishVolumeResponse{}, d.publishEphemeral(ctx, request)
	}
	file, v, err := d.volume(handle)
	if err != nil {
		return nil, err
	}
	if err := checkCapability(v, capability); err != nil {
		return nil, err
	}
	staging := request.GetStagingTargetPath()
	if staging == "" {
		return nil, status.Error(codes.FailedPrecondition, "the staging path is missing")
	}
	device, err := loop.Find(d.volumes.image(file))
	if err != nil {
		return nil, err
	}
	if device == "" {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %q is not staged", handle)
	}
	source := staging
	if capability.GetBlock() != nil {
		source = device
	}
	return &csi.NodePublishVolumeResponse{}, publish(device, source, request)
}

// publish bind-mounts source at the request's target path. device is the volume's device.
func publish(device, source string, request *csi.NodePublishVolumeRequest) error {
	target, readOnly := request.GetTargetPath(), request.GetReadonly() || isReadOnly(request.GetVolumeCapability())
	if source != device { // a file system must be mounted at the staging path
		if isPublished, err := isMounted(device, source, false); err != nil || !isPublished {
			return errors.Join(err, status.Errorf(codes.FailedPrecondition, "volume %q is not staged at %q", request.GetVolumeId(), source))
		}
	}
	if err := checkSingleWriter(device, request); err != nil {
		return err
	}
	isPublished, err := isMounted(device, target, false)
	if err != nil {
		return err
	}
	if !isPublished {
		if err := makeTarget(target, source == device); err != nil {
			return err
		}
		return filesystem.Bind(source, target, readOnly)
	}
	if readOnly { // an earlier call might have been killed before this step
		return filesystem.SetReadOnly(target)
	}
	return nil
}

// checkSingleWriter checks that a volume with the SINGLE_NODE_SINGLE_WRITER access mode has no
// other users.
func checkSingleWriter(device string, request *csi.NodePublishVolumeRequest) error {
	if request.GetVolumeCapability().GetAccessMode().GetMode() != csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER {
		return nil
	}
	mounts, err := filesystem.MountsOf(device)
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if m.Mountpoint != request.GetTargetPath() && m.Mountpoint != request.GetStagingTargetPath() {
			return status.Errorf(codes.FailedPrecondition, "volume %q allows a single writer and is in use at %q", request.GetVolumeId(), m.Mountpoint)
		}
	}
	return nil
}

// makeTarget creates the mount point: a directory, or a file for a block device.
func makeTarget(target string, device bool) error {
	if !device {
		return os.MkdirAll(target, 0o750)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}

// NodeUnpublishVolume unpublishes a volume from a pod's path, and deletes an ephemeral volume.
func (d *Driver) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	handle, target := request.GetVolumeId(), request.GetTargetPath()
	if handle == "" || target == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume ID or the target path is missing")
	}
	release, err := d.locks.acquire(handle)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := filesystem.Unmount(target); err != nil {
		return nil, err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, d.removeEphemeral(handle)
}
