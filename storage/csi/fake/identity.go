package fake

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// controllerCapabilities lists the capabilities that the driver can have. ListVolumes includes the
// nodes to which volumes are attached.
var controllerCapabilities = []csi.ControllerServiceCapability_RPC_Type{
	csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
	csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
	csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
	csi.ControllerServiceCapability_RPC_GET_CAPACITY,
	csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
	csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
	csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
	csi.ControllerServiceCapability_RPC_PUBLISH_READONLY,
	csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES,
	csi.ControllerServiceCapability_RPC_GET_VOLUME,
	csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	csi.ControllerServiceCapability_RPC_MODIFY_VOLUME,
	csi.ControllerServiceCapability_RPC_GET_SNAPSHOT,
	csi.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH,
	csi.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH,
}

var nodeCapabilities = []csi.NodeServiceCapability_RPC_Type{
	csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
	csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
	csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
	csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
}

// has reports whether the driver has a controller capability.
func (d *Driver) has(capability csi.ControllerServiceCapability_RPC_Type) bool {
	return !slices.Contains(d.options.LacksController, capability)
}

// need returns an error if the driver does not have a controller capability.
func (d *Driver) need(capability csi.ControllerServiceCapability_RPC_Type) error {
	if d.has(capability) {
		return nil
	}
	return status.Errorf(codes.Unimplemented, "this driver does not support %s", capability)
}

func (d *Driver) needOnNode(capability csi.NodeServiceCapability_RPC_Type) error {
	if !slices.Contains(d.options.LacksNode, capability) {
		return nil
	}
	return status.Errorf(codes.Unimplemented, "this driver does not support %s on a node", capability)
}

// GetPluginInfo returns the name and version.
func (d *Driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.options.Name, VendorVersion: "1"}, nil
}

// Probe returns the readiness that SetReady set.
func (d *Driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(!d.unready)}, nil
}

// GetPluginCapabilities returns the driver's services.
func (d *Driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	services := []csi.PluginCapability_Service_Type{csi.PluginCapability_Service_CONTROLLER_SERVICE}
	if d.options.Topology != nil {
		services = append(services, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
	}
	response := &csi.GetPluginCapabilitiesResponse{}
	for _, service := range services {
		if !slices.Contains(d.options.LacksPlugin, service) {
			response.Capabilities = append(response.Capabilities, &csi.PluginCapability{
				Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: service}},
			})
		}
	}
	expansion := csi.PluginCapability_VolumeExpansion_ONLINE
	if d.options.OfflineOnly {
		expansion = csi.PluginCapability_VolumeExpansion_OFFLINE
	}
	response.Capabilities = append(response.Capabilities, &csi.PluginCapability{
		Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: expansion}},
	})
	return response, nil
}

// ControllerGetCapabilities returns the controller capabilities that Options do not disable.
func (d *Driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, capability := range controllerCapabilities {
		if d.has(capability) {
			response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
				Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: capability}},
			})
		}
	}
	return response, nil
}

// NodeGetCapabilities returns all node capabilities except Options.LacksNode.
func (d *Driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, capability := range nodeCapabilities {
		if d.needOnNode(capability) == nil {
			response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
				Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: capability}},
			})
		}
	}
	return response, nil
}

// NodeGetInfo returns the node's ID, volume limit and topology.
func (d *Driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	response := &csi.NodeGetInfoResponse{NodeId: d.options.NodeID, MaxVolumesPerNode: d.options.Limit}
	if d.options.Topology != nil {
		response.AccessibleTopology = &csi.Topology{Segments: d.options.Topology}
	}
	return response, nil
}
