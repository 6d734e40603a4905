package fake

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// ControllerGetVolumeHealth returns the health that SetHealth set.
func (d *Driver) ControllerGetVolumeHealth(_ context.Context, r *csi.ControllerGetVolumeHealthRequest) (*csi.ControllerGetVolumeHealthResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH); err != nil {
		return nil, err
	}
	if r.GetVolumeId() == "" {
		return nil, missing("volume ID")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.volume(r.GetVolumeId()); err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeHealthResponse{VolumeHealth: d.healthOf(r.GetVolumeId())}, nil
}

// ControllerListVolumeHealth lists the unhealthy volumes.
func (d *Driver) ControllerListVolumeHealth(_ context.Context, r *csi.ControllerListVolumeHealthRequest) (*csi.ControllerListVolumeHealthResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var problem []string
	for _, id := range sortedIDs(d.volumes) {
		if len(d.healthOf(id).GetHealthStatuses()) > 0 {
			problem = append(problem, id)
		}
	}
	page, next, err := pageOf(problem, r.GetStartingToken(), r.GetMaxEntries())
	response := &csi.ControllerListVolumeHealthResponse{NextToken: next}
	for _, id := range page {
		response.Entries = append(response.Entries, d.healthOf(id))
	}
	return response, err
}

// healthOf returns a volume's health. The caller must hold the lock.
func (d *Driver) healthOf(id string) *csi.VolumeHealth {
	health := &csi.VolumeHealth{VolumeId: id}
	if problem := d.health[id]; problem != csi.VolumeHealthErrorType_UNKNOWN_VOLUME_HEALTH_TYPE {
		health.HealthStatuses = []*csi.VolumeHealth_VolumeHealthEntry{{Status: problem}}
	}
	return health
}
