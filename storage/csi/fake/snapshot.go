package fake

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// CreateSnapshot creates a snapshot, or returns the existing snapshot with this name.
func (d *Driver) CreateSnapshot(_ context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT); err != nil {
		return nil, err
	}
	if r.GetName() == "" || r.GetSourceVolumeId() == "" {
		return nil, missing("name and volume ID")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.snapshots {
		if s.Name == r.GetName() {
			if s.SourceID != r.GetSourceVolumeId() {
				return nil, status.Errorf(codes.AlreadyExists, "snapshot %q belongs to volume %q", s.Name, s.SourceID)
			}
			return &csi.CreateSnapshotResponse{Snapshot: d.query(s)}, nil
		}
	}
	v, err := d.volume(r.GetSourceVolumeId())
	if err != nil {
		return nil, err
	}
	s := &Snapshot{
		ID: d.newID("snapshot"), Name: r.GetName(), SourceID: v.ID, Size: v.Size, Created: time.Now(), Parameters: r.GetParameters(),
	}
	if d.options.Dir != "" {
		if err := d.makeDirectory(s.ID, v.ID); err != nil {
			return nil, err
		}
	}
	d.snapshots[s.ID] = s
	return &csi.CreateSnapshotResponse{Snapshot: d.query(s)}, nil
}

// DeleteSnapshot deletes a snapshot.
func (d *Driver) DeleteSnapshot(_ context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT); err != nil {
		return nil, err
	}
	if r.GetSnapshotId() == "" {
		return nil, missing("snapshot ID")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.snapshots[r.GetSnapshotId()] == nil {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	delete(d.snapshots, r.GetSnapshotId())
	return &csi.DeleteSnapshotResponse{}, d.removeDirectory(r.GetSnapshotId())
}

// ListSnapshots lists snapshots in the order of their IDs. A token is the last ID on the previous
// page.
func (d *Driver) ListSnapshots(_ context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var ids []string
	for _, id := range sortedIDs(d.snapshots) {
		s := d.snapshots[id]
		if matches(r.GetSnapshotId(), s.ID) && matches(r.GetSourceVolumeId(), s.SourceID) {
			ids = append(ids, id)
		}
	}
	page, next, err := pageOf(ids, r.GetStartingToken(), r.GetMaxEntries())
	response := &csi.ListSnapshotsResponse{NextToken: next}
	for _, id := range page {
		response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: d.query(d.snapshots[id])})
	}
	return response, err
}

func matches(desired, value string) bool { return desired == "" || desired == value }

// GetSnapshot returns a snapshot, or NotFound.
func (d *Driver) GetSnapshot(_ context.Context, r *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	if err := d.need(csi.ControllerServiceCapability_RPC_GET_SNAPSHOT); err != nil {
		return nil, err
	}
	if r.GetSnapshotId() == "" {
		return nil, missing("snapshot ID")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.snapshots[r.GetSnapshotId()]
	if s == nil {
		return nil, status.Errorf(codes.NotFound, "snapshot %q does not exist", r.GetSnapshotId())
	}
	return &csi.GetSnapshotResponse{Snapshot: d.query(s)}, nil
}

// query returns a snapshot and counts the query. The caller must hold the lock.
func (d *Driver) query(s *Snapshot) *csi.Snapshot {
	s.queries++
	return &csi.Snapshot{
		SnapshotId: s.ID, SourceVolumeId: s.SourceID, SizeBytes: s.Size,
		CreationTime: timestamppb.New(s.Created), ReadyToUse: s.queries > d.options.SnapshotSteps,
	}
}
