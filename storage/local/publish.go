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

// NodePublishVolume makes a staged volume appear at a pod's path, or makes an ephemeral volume there.
func (d *Driver) NodePublishVolume(ctx context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	handle, target, wanted := request.GetVolumeId(), request.GetTargetPath(), request.GetVolumeCapability()
	if handle == "" || target == "" || wanted == nil {
		return nil, status.Error(codes.InvalidArgument, "a volume, a target path and a capability must be given")
	}
	release, err := d.busy.take(handle)
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
	if err := suits(v, wanted); err != nil {
		return nil, err
	}
	staging := request.GetStagingTargetPath()
	if staging == "" {
		return nil, status.Error(codes.FailedPrecondition, "a staging path must be given")
	}
	device, err := loop.Find(d.volumes.image(file))
	if err != nil {
		return nil, err
	}
	if device == "" {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %q is not staged", handle)
	}
	source := staging
	if wanted.GetBlock() != nil {
		source = device
	}
	return &csi.NodePublishVolumeResponse{}, publish(device, source, request)
}

// publish binds source to the target path of a request. The device is that of the volume.
func publish(device, source string, request *csi.NodePublishVolumeRequest) error {
	target, readOnly := request.GetTargetPath(), request.GetReadonly() || reads(request.GetVolumeCapability())
	if source != device { // a file system must be there
		if done, err := isMounted(device, source, false); err != nil || !done {
			return errors.Join(err, status.Errorf(codes.FailedPrecondition, "volume %q is not staged at %q", request.GetVolumeId(), source))
		}
	}
	if err := alone(device, request); err != nil {
		return err
	}
	done, err := isMounted(device, target, false)
	if err != nil {
		return err
	}
	if !done {
		if err := makeTarget(target, source == device); err != nil {
			return err
		}
		return filesystem.Bind(source, target, readOnly)
	}
	if readOnly { // also now: an earlier call may have been killed before this
		return filesystem.SetReadOnly(target)
	}
	return nil
}

// alone checks that nobody else uses a volume that only one may use.
func alone(device string, request *csi.NodePublishVolumeRequest) error {
	if request.GetVolumeCapability().GetAccessMode().GetMode() != csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER {
		return nil
	}
	mounts, err := filesystem.Of(device)
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if m.Mountpoint != request.GetTargetPath() && m.Mountpoint != request.GetStagingTargetPath() {
			return status.Errorf(codes.FailedPrecondition, "volume %q is for one user only, and is in use at %q", request.GetVolumeId(), m.Mountpoint)
		}
	}
	return nil
}

// makeTarget makes what is bound over: a directory, or for a device a file.
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

// NodeUnpublishVolume takes a volume away from a pod's path. An ephemeral one is gone then.
func (d *Driver) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	handle, target := request.GetVolumeId(), request.GetTargetPath()
	if handle == "" || target == "" {
		return nil, status.Error(codes.InvalidArgument, "a volume and its target path must be given")
	}
	release, err := d.busy.take(handle)
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
