package local

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/loop"
)

// DeleteVolume removes a volume that is not in use. Snapshots of it and volumes made from it stay.
func (d *Driver) DeleteVolume(_ context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	handle := request.GetVolumeId()
	if handle == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume is given")
	}
	file, _, release, err := turnToDelete(d, d.volumes, handle, d.handle)
	if err != nil {
		return nil, err
	}
	defer release()
	if file == "" {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if device, err := loop.Find(d.volumes.image(file)); err != nil {
		return nil, err
	} else if device != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %q is in use: %s has it", handle, device)
	}
	return &csi.DeleteVolumeResponse{}, d.removeVolume(file)
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
