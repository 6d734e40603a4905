package provision

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// createVolume calls CreateVolume when a slot is free.
func (p *provisioner) createVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	release, err := p.createSlots.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return p.Driver.Controller().CreateVolume(ctx, request)
}

// deleteVolume calls DeleteVolume when a slot is free.
func (p *provisioner) deleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error {
	release, err := p.deleteSlots.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	_, err = p.Driver.Controller().DeleteVolume(ctx, request)
	return err
}
