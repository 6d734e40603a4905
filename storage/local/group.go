package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/slipway-platform/slipway/storage/local/image"
)

// group is the record of a group of snapshots of multiple volumes, taken at the same point in time.
type group struct {
	Name    string    `json:"name"`
	State   state     `json:"state"`
	Created time.Time `json:"created"`
	// Volumes lists the handles of the volumes, in sorted order.
	Volumes []string `json:"volumes"`
}

func (g group) check(file string) error {
	switch {
	case fileName(g.Name) != file:
		return fmt.Errorf("it is the record of %q", g.Name)
	case !g.State.valid():
		return fmt.Errorf("invalid state %q", g.State)
	case len(g.Volumes) == 0:
		return errors.New("it has no volumes")
	}
	return nil
}

// members returns the files and initial records of the snapshots in a group.
func (d *Driver) members(g group) (files []string, snapshots []snapshot) {
	for _, volume := range g.Volumes {
		name := g.Name + " of " + volume
		files = append(files, fileName(name))
		snapshots = append(snapshots, snapshot{Name: name, Volume: volume, Created: g.Created, Group: d.handle(fileName(g.Name))})
	}
	return files, snapshots
}

// GroupControllerGetCapabilities returns the capabilities of the group controller service.
func (d *Driver) GroupControllerGetCapabilities(context.Context, *csi.GroupControllerGetCapabilitiesRequest) (*csi.GroupControllerGetCapabilitiesResponse, error) {
	return &csi.GroupControllerGetCapabilitiesResponse{Capabilities: []*csi.GroupControllerServiceCapability{{
		Type: &csi.GroupControllerServiceCapability_Rpc{Rpc: &csi.GroupControllerServiceCapability_RPC{
			Type: csi.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT,
		}},
	}}}, nil
}

// CreateVolumeGroupSnapshot creates snapshots of multiple volumes at the same point in time.
func (d *Driver) CreateVolumeGroupSnapshot(ctx context.Context, request *csi.CreateVolumeGroupSnapshotRequest) (*csi.CreateVolumeGroupSnapshotResponse, error) {
	g := group{Name: request.GetName(), State: stateCreating, Created: time.Now().UTC(), Volumes: slices.Sorted(slices.Values(request.GetSourceVolumeIds()))}
	if g.Name == "" || len(g.Volumes) == 0 || len(slices.Compact(slices.Clone(g.Volumes))) < len(g.Volumes) {
		return nil, status.Error(codes.InvalidArgument, "the name is missing, or the volume IDs are missing or not unique")
	}
	if _, err := parseParameters(request.GetParameters(), nil); err != nil {
		return nil, err
	}
	file := fileName(g.Name)
	release, err := d.locks.acquire(append(g.Volumes, groupKey(file))...)
	if err != nil {
		return nil, err
	}
	defer release()
	existing, err := d.groups.load(file)
	switch {
	case err == nil && existing.State == stateReady:
		if !slices.Equal(existing.Volumes, g.Volumes) {
			return nil, status.Errorf(codes.AlreadyExists, "group %q exists and contains volumes %q", g.Name, existing.Volumes)
		}
		snapshot, err := d.csiGroup(file, existing)
		return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: snapshot}, err
	case err == nil:
		err = d.removeGroup(file, existing) // an earlier attempt was interrupted
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err == nil {
		err = d.takeGroup(ctx, file, g)
	}
	if err != nil {
		return nil, err
	}
	snapshot, err := d.csiGroup(file, g)
	return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: snapshot}, err
}

func groupKey(file string) string { return "group " + file }

// takeGroup creates either all or none of a group's snapshots.
func (d *Driver) takeGroup(ctx context.Context, file string, g group) (err error) {
	files, snapshots := d.members(g)
	sources := make([]string, len(files))
	for i := range snapshots {
		if sources[i], err = d.initSnapshot(&snapshots[i]); err != nil {
			return err
		}
	}
	if err := d.groups.save(file, g); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.removeGroup(file, g))
		}
	}()
	for i, s := range snapshots {
		if err := d.reserveSnapshot(files[i], sources[i], s); err != nil {
			return err
		}
	}
	err = d.withAllQuiesced(sources, func() error {
		for i := range files {
			if _, err := image.Copy(ctx, d.snapshots.image(files[i]), d.volumes.image(sources[i])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, s := range snapshots {
		s.State = stateReady
		if err := d.snapshots.save(files[i], s); err != nil {
			return err
		}
	}
	g.State = stateReady
	return d.groups.save(file, g)
}

// withAllQuiesced calls f while all volumes are quiesced.
func (d *Driver) withAllQuiesced(files []string, f func() error) error {
	if len(files) == 0 {
		return f()
	}
	return d.withQuiesced(files[0], func() error { return d.withAllQuiesced(files[1:], f) })
}

// removeGroup removes the snapshots in a group, then the group's record.
func (d *Driver) removeGroup(file string, g group) error {
	files, _ := d.members(g)
	for _, member := range files {
		if err := d.snapshots.remove(member); err != nil {
			return err
		}
	}
	return d.groups.remove(file)
}

// GetVolumeGroupSnapshot returns a ready group snapshot. For any other group, it returns NotFound.
func (d *Driver) GetVolumeGroupSnapshot(_ context.Context, request *csi.GetVolumeGroupSnapshotRequest) (*csi.GetVolumeGroupSnapshotResponse, error) {
	if request.GetGroupSnapshotId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the group snapshot ID is missing")
	}
	file, err := d.localFile(request.GetGroupSnapshotId())
	var g group
	if err == nil && file != "" {
		g, err = d.groups.load(file)
	}
	if file == "" && err == nil || errors.Is(err, fs.ErrNotExist) || err == nil && g.State != stateReady {
		return nil, status.Errorf(codes.NotFound, "group snapshot %q does not exist", request.GetGroupSnapshotId())
	}
	if err != nil {
		return nil, err
	}
	snapshot, err := d.csiGroup(file, g)
	return &csi.GetVolumeGroupSnapshotResponse{GroupSnapshot: snapshot}, err
}

// DeleteVolumeGroupSnapshot deletes a group and its snapshots.
func (d *Driver) DeleteVolumeGroupSnapshot(_ context.Context, request *csi.DeleteVolumeGroupSnapshotRequest) (*csi.DeleteVolumeGroupSnapshotResponse, error) {
	if request.GetGroupSnapshotId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the group snapshot ID is missing")
	}
	file, g, release, err := lockForDelete(d, d.groups, request.GetGroupSnapshotId(), groupKey)
	if err != nil {
		return nil, err
	}
	defer release()
	if file == "" {
		return &csi.DeleteVolumeGroupSnapshotResponse{}, nil
	}
	g.State = stateDeleting
	if err := d.groups.save(file, g); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeGroupSnapshotResponse{}, d.removeGroup(file, g)
}

// csiGroup converts a complete group to a CSI group snapshot.
func (d *Driver) csiGroup(file string, g group) (*csi.VolumeGroupSnapshot, error) {
	snapshot := &csi.VolumeGroupSnapshot{GroupSnapshotId: d.handle(file), CreationTime: timestamppb.New(g.Created), ReadyToUse: true}
	files, _ := d.members(g)
	for _, member := range files {
		s, err := d.snapshots.load(member)
		if err != nil {
			return nil, err
		}
		snapshot.Snapshots = append(snapshot.Snapshots, d.csiSnapshot(member, s))
	}
	return snapshot, nil
}
