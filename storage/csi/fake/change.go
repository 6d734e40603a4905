package fake

import (
	"context"
	"maps"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// mutable lists the parameters that can be modified.
var mutable = []string{"iops", "throughput", "tier"}

// ControllerExpandVolume expands a volume.
func (d *Driver) ControllerExpandVolume(_ context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_EXPAND_VOLUME); err != nil {
		return nil, err
	}
	if r.GetVolumeId() == "" || r.GetCapacityRange() == nil {
		return nil, missing("volume ID and capacity")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	v, err := d.volume(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if d.options.OfflineOnly && len(v.Attached)+len(v.Published) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %q is in use", v.Name)
	}
	size, err := sizeWithin(r.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	if size-v.Size > d.free() {
		return nil, status.Errorf(codes.OutOfRange, "%d bytes are free", d.free())
	}
	v.Size = max(v.Size, size)
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: v.Size, NodeExpansionRequired: d.options.NodeExpansion}, nil
}

// ControllerModifyVolume modifies the iops, throughput and tier parameters.
func (d *Driver) ControllerModifyVolume(_ context.Context, r *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_MODIFY_VOLUME); err != nil {
		return nil, err
	}
	if r.GetVolumeId() == "" {
		return nil, missing("volume ID")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	v, err := d.volume(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := checkMutable(r.GetMutableParameters()); err != nil {
		return nil, err
	}
	if v.Mutable == nil {
		v.Mutable = map[string]string{}
	}
	maps.Copy(v.Mutable, r.GetMutableParameters())
	return &csi.ControllerModifyVolumeResponse{}, nil
}

func checkMutable(parameters map[string]string) error {
	for key := range parameters {
		if !slices.Contains(mutable, key) {
			return status.Errorf(codes.InvalidArgument, "parameter %q cannot be modified", key)
		}
	}
	return nil
}
