package fake

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// smallest is the size of a volume if the request does not specify a size: 1 GiB.
const smallest = 1 << 30

// CreateVolume creates a volume, or returns the existing volume with this name.
func (d *Driver) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME); err != nil {
		return nil, err
	}
	if r.GetName() == "" || len(r.GetVolumeCapabilities()) == 0 {
		return nil, missing("name and capabilities")
	}
	if err := checkMutable(r.GetMutableParameters()); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	size, err := sizeWithin(r.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	for _, v := range d.volumes {
		if v.Name == r.GetName() {
			if limit := r.GetCapacityRange().GetLimitBytes(); v.Size < size || limit > 0 && v.Size > limit {
				return nil, status.Errorf(codes.AlreadyExists, "volume %q has %d bytes", v.Name, v.Size)
			}
			return &csi.CreateVolumeResponse{Volume: d.describe(v)}, nil
		}
	}
	v, err := d.newVolume(r, size)
	if err != nil {
		return nil, err
	}
	d.volumes[v.ID] = v
	return &csi.CreateVolumeResponse{Volume: d.describe(v)}, nil
}

// newVolume creates a volume, from its content source if the request specifies one. The caller must
// hold the lock.
func (d *Driver) newVolume(r *csi.CreateVolumeRequest, size int64) (*Volume, error) {
	if size > d.free() {
		return nil, status.Errorf(codes.ResourceExhausted, "%d bytes are free", d.free())
	}
	v := &Volume{
		ID: d.newID("volume"), Name: r.GetName(), Size: size,
		Parameters: r.GetParameters(), Mutable: maps.Clone(r.GetMutableParameters()), Topology: d.options.Topology,
		SnapshotID: r.GetVolumeContentSource().GetSnapshot().GetSnapshotId(),
		SourceID:   r.GetVolumeContentSource().GetVolume().GetVolumeId(),
		Block:      r.GetVolumeCapabilities()[0].GetBlock() != nil,
		Attached:   map[string]bool{}, Staged: map[string]string{}, Published: map[string]string{},
	}
	if v.SnapshotID != "" && d.snapshots[v.SnapshotID] == nil {
		return nil, status.Errorf(codes.NotFound, "snapshot %q does not exist", v.SnapshotID)
	}
	if v.SourceID != "" && d.volumes[v.SourceID] == nil {
		return nil, status.Errorf(codes.NotFound, "volume %q does not exist", v.SourceID)
	}
	if d.options.Dir == "" {
		return v, nil
	}
	return v, d.makeDirectory(v.ID, v.SnapshotID+v.SourceID)
}

// makeDirectory creates the directory of a volume or snapshot. If from is not empty, it copies the
// content of the volume or snapshot with that ID.
func (d *Driver) makeDirectory(id, from string) error {
	to := filepath.Join(d.options.Dir, id)
	if err := os.Mkdir(to, 0o777); err != nil || from == "" {
		return err
	}
	return os.CopyFS(to, os.DirFS(filepath.Join(d.options.Dir, from)))
}

// DeleteVolume deletes a volume that is neither attached nor in use on this node.
func (d *Driver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME); err != nil {
		return nil, err
	}
	if r.GetVolumeId() == "" {
		return nil, missing("volume ID")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.volumes[r.GetVolumeId()]
	if v == nil {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if len(v.Attached)+len(v.Staged)+len(v.Published) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %q is in use", v.Name)
	}
	delete(d.volumes, v.ID)
	return &csi.DeleteVolumeResponse{}, d.removeDirectory(v.ID)
}

func (d *Driver) removeDirectory(id string) error {
	if d.options.Dir == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(d.options.Dir, id))
}

// ValidateVolumeCapabilities confirms all capabilities.
func (d *Driver) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if r.GetVolumeId() == "" || len(r.GetVolumeCapabilities()) == 0 {
		return nil, missing("volume ID and capabilities")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.volume(r.GetVolumeId()); err != nil {
		return nil, err
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: r.GetVolumeContext(), VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(),
	}}, nil
}

// ListVolumes lists volumes in the order of their IDs. A token is the last ID on the previous page.
func (d *Driver) ListVolumes(_ context.Context, r *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_LIST_VOLUMES); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	page, next, err := pageOf(sortedIDs(d.volumes), r.GetStartingToken(), r.GetMaxEntries())
	response := &csi.ListVolumesResponse{NextToken: next}
	for _, id := range page {
		v := d.volumes[id]
		entry := &csi.ListVolumesResponse_Entry{Volume: d.describe(v), Status: &csi.ListVolumesResponse_VolumeStatus{}}
		if d.has(csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES) {
			entry.Status.PublishedNodeIds = sortedIDs(v.Attached)
		}
		response.Entries = append(response.Entries, entry)
	}
	return response, err
}

// ControllerGetVolume returns a volume and the nodes to which it is attached.
func (d *Driver) ControllerGetVolume(_ context.Context, r *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_GET_VOLUME); err != nil {
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
	return &csi.ControllerGetVolumeResponse{
		Volume: d.describe(v), Status: &csi.ControllerGetVolumeResponse_VolumeStatus{PublishedNodeIds: sortedIDs(v.Attached)},
	}, nil
}

// GetCapacity returns the free capacity, which is the same for all volumes.
func (d *Driver) GetCapacity(_ context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_GET_CAPACITY); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	free := d.free()
	for key, value := range r.GetAccessibleTopology().GetSegments() {
		if own, exists := d.options.Topology[key]; exists && own != value {
			free = 0
		}
	}
	return &csi.GetCapacityResponse{AvailableCapacity: free, MaximumVolumeSize: wrapperspb.Int64(free)}, nil
}

// free returns the free capacity, in bytes. The caller must hold the lock.
func (d *Driver) free() int64 {
	free := d.options.Capacity
	for _, v := range d.volumes {
		free -= v.Size
	}
	return free
}

// volume returns the volume with the given ID, or NotFound. The caller must hold the lock.
func (d *Driver) volume(id string) (*Volume, error) {
	if v := d.volumes[id]; v != nil {
		return v, nil
	}
	return nil, status.Errorf(codes.NotFound, "volume %q does not exist", id)
}

// describe converts a volume to its CSI message. The volume context contains the volume's name, so
// that a test can check that the volume context reaches the node.
func (d *Driver) describe(v *Volume) *csi.Volume {
	volume := &csi.Volume{VolumeId: v.ID, CapacityBytes: v.Size, VolumeContext: map[string]string{"name": v.Name}}
	if v.Topology != nil {
		volume.AccessibleTopology = []*csi.Topology{{Segments: v.Topology}}
	}
	if v.SnapshotID != "" {
		volume.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: v.SnapshotID},
		}}
	}
	if v.SourceID != "" {
		volume.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: v.SourceID},
		}}
	}
	return volume
}

func (d *Driver) newID(kind string) string {
	d.ids++
	return kind + "-" + strconv.Itoa(d.ids)
}

// sizeWithin returns a size within a capacity range, in bytes.
func sizeWithin(capacity *csi.CapacityRange) (int64, error) {
	size := max(capacity.GetRequiredBytes(), 0)
	if size == 0 {
		size = smallest
		if limit := capacity.GetLimitBytes(); limit > 0 {
			size = min(size, limit)
		}
	}
	if limit := capacity.GetLimitBytes(); limit > 0 && size > limit {
		return 0, status.Errorf(codes.OutOfRange, "%d bytes are more than the limit of %d", size, limit)
	}
	return size, nil
}

// pageOf returns a page of the sorted IDs and the next page's token. A limit of 0 means no limit.
func pageOf(ids []string, token string, limit int32) (page []string, next string, err error) {
	if token != "" {
		after, ok := slices.BinarySearch(ids, token)
		if !ok {
			return nil, "", status.Errorf(codes.Aborted, "token %q is not valid", token)
		}
		ids = ids[after+1:]
	}
	if limit > 0 && int(limit) < len(ids) {
		return ids[:limit], ids[limit-1], nil
	}
	return ids, "", nil
}

func missing(noun string) error {
	return status.Error(codes.InvalidArgument, fmt.Sprintf("the request lacks %s", noun))
}
