package fake

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ControllerPublishVolume attaches a volume to a node. The publish context contains the node ID.
func (d *Driver) ControllerPublishVolume(_ context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME); err != nil {
		return nil, err
	}
	if r.GetVolumeId() == "" || r.GetNodeId() == "" || r.GetVolumeCapability() == nil {
		return nil, missing("volume ID, node ID and capability")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	v, err := d.volume(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if r.GetNodeId() != d.options.NodeID && !slices.Contains(d.options.Nodes, r.GetNodeId()) {
		return nil, status.Errorf(codes.NotFound, "node %q does not exist", r.GetNodeId())
	}
	response := &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{"node": r.GetNodeId()}}
	if readOnly, attached := v.Attached[r.GetNodeId()]; attached {
		if readOnly != r.GetReadonly() {
			return nil, status.Errorf(codes.AlreadyExists, "volume %q is attached in another mode", v.Name)
		}
		return response, nil
	}
	if len(v.Attached) > 0 && !forSeveralNodes(r.GetVolumeCapability()) {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %q is attached to another node", v.Name)
	}
	if d.options.Limit > 0 && d.attachedTo(r.GetNodeId()) >= d.options.Limit {
		return nil, status.Errorf(codes.ResourceExhausted, "node %q has the maximum number of volumes", r.GetNodeId())
	}
	v.Attached[r.GetNodeId()] = r.GetReadonly()
	return response, nil
}

func forSeveralNodes(c *csi.VolumeCapability) bool {
	switch c.GetAccessMode().GetMode() {
	case csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
		return true
	}
	return false
}

// attachedTo returns the number of volumes attached to a node. The caller must hold the lock.
func (d *Driver) attachedTo(node string) (count int64) {
	for _, v := range d.volumes {
		if _, attached := v.Attached[node]; attached {
			count++
		}
	}
	return count
}

// ControllerUnpublishVolume detaches a volume from a node, or from all nodes if the request
// contains no node ID.
func (d *Driver) ControllerUnpublishVolume(_ context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME); err != nil {
		return nil, err
	}
	if r.GetVolumeId() == "" {
		return nil, missing("volume ID")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.volumes[r.GetVolumeId()]; v != nil {
		if r.GetNodeId() == "" {
			clear(v.Attached)
		}
		delete(v.Attached, r.GetNodeId())
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}
