package local

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/slipway-platform/slipway/storage/local/image"
)

// CreateSnapshot creates a consistent copy of a volume.
func (d *Driver) CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if request.GetName() == "" || request.GetSourceVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the name or the source volume ID is missing")
	}
	if len(request.GetParameters()) > 0 {
		if _, err := parseParameters(request.GetParameters(), nil); err != nil {
			return nil, err
		}
	}
	if err := d.accessible(request.GetAccessibilityRequirements()); err != nil {
		return nil, err
	}
	file := fileName(request.GetName())
	release, err := d.locks.acquire(snapshotKey(file), request.GetSourceVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	s, err := d.takeSnapshot(ctx, file, snapshot{Name: request.GetName(), Volume: request.GetSourceVolumeId(), Created: time.Now().UTC()})
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: d.csiSnapshot(file, s)}, nil
}

// snapshotKey returns a snapshot's lock key. The key differs from the handle, because a volume can
// have the same handle.
func snapshotKey(file string) string { return "snapshot " + file }

// takeSnapshot creates a snapshot if it does not exist. The caller must have locked the snapshot
// and its volume.
func (d *Driver) takeSnapshot(ctx context.Context, file string, snap snapshot) (snapshot, error) {
	existing, err := d.snapshots.load(file)
	switch {
	case err == nil && existing.State == stateReady:
		if existing.Name != snap.Name || existing.Volume != snap.Volume || existing.Group != snap.Group {
			return existing, status.Errorf(codes.AlreadyExists, "snapshot %q exists and belongs to volume %q", existing.Name, existing.Volume)
		}
		return existing, nil
	case err == nil:
		if err := d.snapshots.remove(file); err != nil { // an earlier attempt was interrupted
			return existing, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return existing, err
	}
	source, err := d.initSnapshot(&snap)
	if err != nil {
		return snap, err
	}
	if err := d.reserveSnapshot(file, source, snap); err != nil {
		return snap, err
	}
	err = d.withQuiesced(source, func() error {
		_, err := image.Copy(ctx, d.snapshots.image(file), d.volumes.image(source))
		return err
	})
	if err == nil {
		snap.State = stateReady
		err = d.snapshots.save(file, snap)
	}
	if err != nil {
		return snap, errors.Join(err, d.snapshots.remove(file))
	}
	return snap, nil
}

// initSnapshot sets the fields that a new snapshot inherits from its volume, and returns the
// volume's file.
func (d *Driver) initSnapshot(s *snapshot) (source string, err error) {
	source, v, err := d.volume(s.Volume)
	s.State, s.Size, s.Filesystem = stateCreating, v.Size, v.Filesystem
	return source, err
}

// reserveSnapshot writes a new snapshot's record if there is enough capacity for its allocated
// size.
func (d *Driver) reserveSnapshot(file, source string, s snapshot) error {
	d.capacityMu.Lock()
	defer d.capacityMu.Unlock()
	size, err := image.Allocated(d.volumes.image(source))
	if err != nil {
		return err
	}
	if err := d.checkCapacity(size); err != nil {
		return err
	}
	s.Reserved = size
	return d.snapshots.save(file, s)
}

// DeleteSnapshot deletes a snapshot. Volumes that were created from it remain.
func (d *Driver) DeleteSnapshot(_ context.Context, request *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if request.GetSnapshotId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the snapshot ID is missing")
	}
	file, s, release, err := lockForDelete(d, d.snapshots, request.GetSnapshotId(), snapshotKey)
	if err != nil {
		return nil, err
	}
	defer release()
	if file == "" {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	if s.Group != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "snapshot %q belongs to group %q; delete the group", request.GetSnapshotId(), s.Group)
	}
	if s.State == stateReady {
		s.State = stateDeleting
		if err := d.snapshots.save(file, s); err != nil {
			return nil, err
		}
	}
	return &csi.DeleteSnapshotResponse{}, d.snapshots.remove(file)
}

// csiSnapshot converts a snapshot's record to a CSI snapshot.
func (d *Driver) csiSnapshot(file string, s snapshot) *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId: d.handle(file), SourceVolumeId: s.Volume, SizeBytes: s.Size, CreationTime: timestamppb.New(s.Created),
		ReadyToUse: s.State == stateReady, GroupSnapshotId: s.Group, AccessibleTopology: d.topology(),
	}
}
