package provision

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// createVolume asks the driver for a volume once there is a place.
func (p *provisioner) createVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	leave, err := p.creates.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return p.Driver.Controller().CreateVolume(ctx, request)
}

// deleteVolume asks the driver to delete a volume once there is a place.
func (p *provisioner) deleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error {
	leave, err := p.deletes.Hold(ctx)
	if err != nil {
		return err
	}
	defer leave()
	_, err = p.Driver.Controller().DeleteVolume(ctx, request)
	return err
}
