package local

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/loop"
)

// DeleteVolume deletes a volume that is not in use. Its snapshots and clones remain.
func (d *Driver) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	handle := request.GetVolumeId()
	if handle == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume ID is missing")
	}
	file, v, release, err := lockForDelete(d, d.volumes, handle, d.handle)
	if err != nil {
		return nil, err
	}
	defer release()
	if file == "" {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if device, err := d.inUseBy(ctx, file, v); err != nil {
		return nil, err
	} else if device != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %q is in use by device %s", handle, device)
	}
	return &csi.DeleteVolumeResponse{}, d.removeVolume(file)
}

// inUseBy returns the device that uses a volume, or "" if the volume is not in use. If a device's
// file system is not mounted in this mount namespace, another mount namespace has a copy of an
// earlier mount, usually the namespace of a starting container. inUseBy waits up to detachTimeout
// for such a device to be detached, because a caller retries a rejected call only after minutes.
func (d *Driver) inUseBy(ctx context.Context, file string, v volume) (string, error) {
	image := d.volumes.image(file)
	device, err := loop.Find(image)
	if err != nil || device == "" || v.Filesystem == "" {
		return device, err
	}
	if mounts, err := filesystem.MountsOf(device); err != nil || len(mounts) > 0 {
		return device, err
	}
	if err := waitForDetach(ctx, image); err != nil {
		return "", err
	}
	return loop.Find(image)
}

// removeVolume removes a volume in any state. If the process is killed, the next startup completes
// the removal.
func (d *Driver) removeVolume(file string) error {
	v, err := d.volumes.load(file)
	if err != nil {
		return err
	}
	if v.State == stateReady {
		v.State = stateDeleting
		if err := d.volumes.save(file, v); err != nil {
			return err
		}
	}
	return d.volumes.remove(file)
}
