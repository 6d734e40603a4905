package local

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tokenPrefix stands before the name that a page ended with. A token stays good when that volume is deleted.
const tokenPrefix = "after:"

// page finds the part of sorted names that a list call asks for, and the token of the next.
func page(names []string, token string, limit int32) (part []string, next string, err error) {
	if limit < 0 {
		return nil, "", status.Error(codes.InvalidArgument, "the number of entries is negative")
	}
	if token != "" {
		last, ok := strings.CutPrefix(token, tokenPrefix)
		if !ok {
			return nil, "", status.Errorf(codes.Aborted, "starting token %q was not given by this driver: begin anew", token)
		}
		i, found := slices.BinarySearch(names, last)
		if found {
			i++
		}
		names = names[i:]
	}
	if limit == 0 || int(limit) >= len(names) {
		return names, "", nil
	}
	return names[:limit], tokenPrefix + names[limit-1], nil
}

// ListVolumes lists the volumes of this node. One whose record is damaged is listed without a capacity.
func (d *Driver) ListVolumes(_ context.Context, request *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	files, err := d.volumes.files()
	if err != nil {
		return nil, err
	}
	files, next, err := page(files, request.GetStartingToken(), request.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	response := &csi.ListVolumesResponse{NextToken: next}
	for _, file := range files {
		v, err := d.volumes.load(file)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (v.State != stateReady || v.Target != "" || v.isCache()) {
			continue
		}
		var damaged *damagedError
		if err != nil && !errors.As(err, &damaged) {
			return nil, err
		}
		response.Entries = append(response.Entries, &csi.ListVolumesResponse_Entry{
			Volume: d.describeVolume(file, v), Status: &csi.ListVolumesResponse_VolumeStatus{},
		})
	}
	return response, nil
}

// ControllerGetVolume tells about one volume.
func (d *Driver) ControllerGetVolume(_ context.Context, request *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume is given")
	}
	file, v, err := d.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeResponse{Volume: d.describeVolume(file, v), Status: &csi.ControllerGetVolumeResponse_VolumeStatus{}}, nil
}

// ValidateVolumeCapabilities confirms what a volume can be used as.
func (d *Driver) ValidateVolumeCapabilities(_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if request.GetVolumeId() == "" || len(request.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "a volume and its capabilities must be given")
	}
	_, v, err := d.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	content, err := contentOf(request.GetVolumeCapabilities())
	if err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	if content != v.Filesystem {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: "it is " + describe(v.Filesystem)}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeCapabilities: request.GetVolumeCapabilities(), VolumeContext: request.GetVolumeContext(),
		Parameters: request.GetParameters(), MutableParameters: request.GetMutableParameters(),
	}}, nil
}

// ListSnapshots lists the snapshots of this node, all of them, those of one volume, or one.
func (d *Driver) ListSnapshots(_ context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	var problems []error
	found := map[string]snapshot{}
	var files []string
	for file, s := range d.snapshots.all(&problems) {
		if s.State != stateReady || request.GetSourceVolumeId() != "" && request.GetSourceVolumeId() != s.Volume ||
			request.GetSnapshotId() != "" && request.GetSnapshotId() != d.handle(file) {
			continue
		}
		files, found[file] = append(files, file), s
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	files, next, err := page(files, request.GetStartingToken(), request.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	response := &csi.ListSnapshotsResponse{NextToken: next}
	for _, file := range files {
		response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: d.describeSnapshot(file, found[file])})
	}
	return response, nil
}

// GetSnapshot tells about one snapshot.
func (d *Driver) GetSnapshot(_ context.Context, request *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	if request.GetSnapshotId() == "" {
		return nil, status.Error(codes.InvalidArgument, "no snapshot is given")
	}
	file, s, err := d.snapshot(request.GetSnapshotId())
	if err != nil {
		return nil, err
	}
	return &csi.GetSnapshotResponse{Snapshot: d.describeSnapshot(file, s)}, nil
}
