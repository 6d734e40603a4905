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

// group is the record of snapshots that were taken of several volumes at one moment.
type group struct {
	Name    string    `json:"name"`
	State   state     `json:"state"`
	Created time.Time `json:"created"`
	// Volumes are the handles of the volumes, sorted.
	Volumes []string `json:"volumes"`
}

func (g group) check(file string) error {
	switch {
	case fileName(g.Name) != file:
		return fmt.Errorf("it is the record of %q", g.Name)
	case !g.State.known():
		return fmt.Errorf("state %q is none", g.State)
	case len(g.Volumes) == 0:
		return errors.New("it has no volumes")
	}
	return nil
}

// members are the snapshots of a group: their files, and what is known of them from the beginning.
func (d *Driver) members(g group) (files []string, snapshots []snapshot) {
	for _, volume := range g.Volumes {
		name := g.Name + " of " + volume
		files = append(files, fileName(name))
		snapshots = append(snapshots, snapshot{Name: name, Volume: volume, Created: g.Created, Group: d.handle(fileName(g.Name))})
	}
	return files, snapshots
}

// GroupControllerGetCapabilities tells what the group controller service can do.
func (d *Driver) GroupControllerGetCapabilities(context.Context, *csi.GroupControllerGetCapabilitiesRequest) (*csi.GroupControllerGetCapabilitiesResponse, error) {
	return &csi.GroupControllerGetCapabilitiesResponse{Capabilities: []*csi.GroupControllerServiceCapability{{
		Type: &csi.GroupControllerServiceCapability_Rpc{Rpc: &csi.GroupControllerServiceCapability_RPC{
			Type: csi.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT,
		}},
	}}}, nil
}

// CreateVolumeGroupSnapshot copies several volumes at one moment.
func (d *Driver) CreateVolumeGroupSnapshot(ctx context.Context, request *csi.CreateVolumeGroupSnapshotRequest) (*csi.CreateVolumeGroupSnapshotResponse, error) {
	g := group{Name: request.GetName(), State: stateCreating, Created: time.Now().UTC(), Volumes: slices.Sorted(slices.Values(request.GetSourceVolumeIds()))}
	if g.Name == "" || len(g.Volumes) == 0 || len(slices.Compact(slices.Clone(g.Volumes))) < len(g.Volumes) {
		return nil, status.Error(codes.InvalidArgument, "a name and volumes must be given, each once")
	}
	if _, err := parseParameters(request.GetParameters(), nil); err != nil {
		return nil, err
	}
	file := fileName(g.Name)
	release, err := d.busy.take(append(g.Volumes, groupKey(file))...)
	if err != nil {
		return nil, err
	}
	defer release()
	have, err := d.groups.load(file)
	switch {
	case err == nil && have.State == stateReady:
		if !slices.Equal(have.Volumes, g.Volumes) {
			return nil, status.Errorf(codes.AlreadyExists, "group %q exists and is of volumes %q", g.Name, have.Volumes)
		}
		described, err := d.describeGroup(file, have)
		return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: described}, err
	case err == nil:
		err = d.removeGroup(file, have) // what an earlier attempt could not remove
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err == nil {
		err = d.takeGroup(ctx, file, g)
	}
	if err != nil {
		return nil, err
	}
	described, err := d.describeGroup(file, g)
	return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: described}, err
}

func groupKey(file string) string { return "group " + file }

// takeGroup makes the snapshots of a group, all or none.
func (d *Driver) takeGroup(ctx context.Context, file string, g group) (err error) {
	files, snapshots := d.members(g)
	sources := make([]string, len(files))
	for i := range snapshots {
		if sources[i], err = d.complete(&snapshots[i]); err != nil {
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
		if err := d.beginSnapshot(files[i], sources[i], s); err != nil {
			return err
		}
	}
	err = d.allStill(sources, func() error {
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

// allStill runs f while all the volumes are still.
func (d *Driver) allStill(files []string, f func() error) error {
	if len(files) == 0 {
		return f()
	}
	return d.still(files[0], func() error { return d.allStill(files[1:], f) })
}

// removeGroup removes the snapshots of a group, then its record.
func (d *Driver) removeGroup(file string, g group) error {
	files, _ := d.members(g)
	for _, member := range files {
		if err := d.snapshots.remove(member); err != nil {
			return err
		}
	}
	return d.groups.remove(file)
}

// GetVolumeGroupSnapshot tells about a group.
func (d *Driver) GetVolumeGroupSnapshot(_ context.Context, request *csi.GetVolumeGroupSnapshotRequest) (*csi.GetVolumeGroupSnapshotResponse, error) {
	if request.GetGroupSnapshotId() == "" {
		return nil, status.Error(codes.InvalidArgument, "no group is given")
	}
	file, err := d.here(request.GetGroupSnapshotId())
	var g group
	if err == nil && file != "" {
		g, err = d.groups.load(file)
	}
	if file == "" && err == nil || errors.Is(err, fs.ErrNotExist) || err == nil && g.State != stateReady {
		return nil, status.Errorf(codes.NotFound, "there is no group of snapshots %q", request.GetGroupSnapshotId())
	}
	if err != nil {
		return nil, err
	}
	described, err := d.describeGroup(file, g)
	return &csi.GetVolumeGroupSnapshotResponse{GroupSnapshot: described}, err
}

// DeleteVolumeGroupSnapshot removes a group with its snapshots.
func (d *Driver) DeleteVolumeGroupSnapshot(_ context.Context, request *csi.DeleteVolumeGroupSnapshotRequest) (*csi.DeleteVolumeGroupSnapshotResponse, error) {
	if request.GetGroupSnapshotId() == "" {
		return nil, status.Error(codes.InvalidArgument, "no group is given")
	}
	file, g, release, err := turnToDelete(d, d.groups, request.GetGroupSnapshotId(), groupKey)
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

// describeGroup is a group that is ready in the specification's words.
func (d *Driver) describeGroup(file string, g group) (*csi.VolumeGroupSnapshot, error) {
	described := &csi.VolumeGroupSnapshot{GroupSnapshotId: d.handle(file), CreationTime: timestamppb.New(g.Created), ReadyToUse: true}
	files, _ := d.members(g)
	for _, member := range files {
		s, err := d.snapshots.load(member)
		if err != nil {
			return nil, err
		}
		described.Snapshots = append(described.Snapshots, d.describeSnapshot(member, s))
	}
	return described, nil
}
