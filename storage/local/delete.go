package local

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/loop"
)

// DeleteVolume removes a volume that is not in use. Snapshots of it and volumes made from it stay.
func (d *Driver) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	handle := request.GetVolumeId()
	if handle == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume is given")
	}
	file, v, release, err := turnToDelete(d, d.volumes, handle, d.handle)
	if err != nil {
		return nil, err
	}
	defer release()
	if file == "" {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if device, err := d.user(ctx, file, v); err != nil {
		return nil, err
	} else if device != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %q is in use: %s has it", handle, device)
	}
	return &csi.DeleteVolumeResponse{}, d.removeVolume(file)
}

// user is the device by which a volume is used, or empty. A file system that is mounted nowhere here has its device only as long as another mount namespace,
// mostly of a container that starts, has a copy of an earlier mount: its end is waited for, since whoever is refused comes back after minutes.
func (d *Driver) user(ctx context.Context, file string, v volume) (string, error) {
	image := d.volumes.image(file)
	device, err := loop.Find(image)
	if err != nil || device == "" || v.Filesystem == "" {
		return device, err
	}
	if mounts, err := filesystem.Of(device); err != nil || len(mounts) > 0 {
		return device, err
	}
	if err := awaitEnd(ctx, image); err != nil {
		return "", err
	}
	return loop.Find(image)
}

// removeVolume removes a volume, whatever its state, so that a process that is killed meanwhile goes on at its next start.
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
