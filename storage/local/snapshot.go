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

// CreateSnapshot copies a volume at one moment.
func (d *Driver) CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if request.GetName() == "" || request.GetSourceVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "a name and a volume must be given")
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
	release, err := d.busy.take(snapshotKey(file), request.GetSourceVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	s, err := d.take(ctx, file, snapshot{Name: request.GetName(), Volume: request.GetSourceVolumeId(), Created: time.Now().UTC()})
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: d.describeSnapshot(file, s)}, nil
}

// snapshotKey is what busy knows a snapshot by. It is not its handle, because a volume may have the same.
func snapshotKey(file string) string { return "snapshot " + file }

// take makes a snapshot unless it is there. The caller has taken it and its volume.
func (d *Driver) take(ctx context.Context, file string, wanted snapshot) (snapshot, error) {
	have, err := d.snapshots.load(file)
	switch {
	case err == nil && have.State == stateReady:
		if have.Name != wanted.Name || have.Volume != wanted.Volume || have.Group != wanted.Group {
			return have, status.Errorf(codes.AlreadyExists, "snapshot %q exists and is of volume %q", have.Name, have.Volume)
		}
		return have, nil
	case err == nil:
		if err := d.snapshots.remove(file); err != nil { // what an earlier attempt could not remove
			return have, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return have, err
	}
	source, err := d.complete(&wanted)
	if err != nil {
		return wanted, err
	}
	if err := d.beginSnapshot(file, source, wanted); err != nil {
		return wanted, err
	}
	err = d.still(source, func() error {
		_, err := image.Copy(ctx, d.snapshots.image(file), d.volumes.image(source))
		return err
	})
	if err == nil {
		wanted.State = stateReady
		err = d.snapshots.save(file, wanted)
	}
	if err != nil {
		return wanted, errors.Join(err, d.snapshots.remove(file))
	}
	return wanted, nil
}

// complete fills in what a new snapshot has of its volume, and finds the volume.
func (d *Driver) complete(s *snapshot) (source string, err error) {
	source, v, err := d.volume(s.Volume)
	s.State, s.Size, s.Filesystem = stateCreating, v.Size, v.Filesystem
	return source, err
}

// beginSnapshot writes the record of a new snapshot if what it will have allocated can be promised.
func (d *Driver) beginSnapshot(file, source string, s snapshot) error {
	d.promising.Lock()
	defer d.promising.Unlock()
	size, err := image.Allocated(d.volumes.image(source))
	if err != nil {
		return err
	}
	if err := d.promise(size); err != nil {
		return err
	}
	return d.snapshots.save(file, s)
}

// DeleteSnapshot removes a snapshot. Volumes that were made from it stay.
func (d *Driver) DeleteSnapshot(_ context.Context, request *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if request.GetSnapshotId() == "" {
		return nil, status.Error(codes.InvalidArgument, "no snapshot is given")
	}
	file, s, release, err := turnToDelete(d, d.snapshots, request.GetSnapshotId(), snapshotKey)
	if err != nil {
		return nil, err
	}
	defer release()
	if file == "" {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	if s.Group != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "snapshot %q ends with its group %q", request.GetSnapshotId(), s.Group)
	}
	if s.State == stateReady {
		s.State = stateDeleting
		if err := d.snapshots.save(file, s); err != nil {
			return nil, err
		}
	}
	return &csi.DeleteSnapshotResponse{}, d.snapshots.remove(file)
}

// describeSnapshot is a snapshot in the specification's words.
func (d *Driver) describeSnapshot(file string, s snapshot) *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId: d.handle(file), SourceVolumeId: s.Volume, SizeBytes: s.Size, CreationTime: timestamppb.New(s.Created),
		ReadyToUse: s.State == stateReady, GroupSnapshotId: s.Group, AccessibleTopology: d.topology(),
	}
}
