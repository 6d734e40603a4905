package provision

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// createVolume waits for a free slot, then calls CreateVolume.
func (p *provisioner) createVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	release, err := p.createSlots.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return p.Driver.Controller().CreateVolume(ctx, request)
}

// deleteVolume waits for a free slot, then calls DeleteVolume.
func (p *provisioner) deleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error {
	release, err := p.deleteSlots.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	_, err = p.Driver.Controller().DeleteVolume(ctx, request)
	return err
}
