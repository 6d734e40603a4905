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

// tokenPrefix is the prefix of a pagination token. The rest of the token is the last name on the
// page, so the token remains valid even if the volume with this name is deleted.
const tokenPrefix = "after:"

// page returns a page of sorted names and the next page's token.
func page(names []string, token string, limit int32) (part []string, next string, err error) {
	if limit < 0 {
		return nil, "", status.Error(codes.InvalidArgument, "the maximum number of entries is negative")
	}
	if token != "" {
		previous, ok := strings.CutPrefix(token, tokenPrefix)
		if !ok {
			return nil, "", status.Errorf(codes.Aborted, "starting token %q is not from this driver; start again without a token", token)
		}
		i, exact := slices.BinarySearch(names, previous)
		if exact {
			i++
		}
		names = names[i:]
	}
	if limit == 0 || int(limit) >= len(names) {
		return names, "", nil
	}
	return names[:limit], tokenPrefix + names[limit-1], nil
}

// ListVolumes lists the volumes on this node. A volume whose record is corrupt is listed without
// its capacity.
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
		var corrupt *corruptRecordError
		if err != nil && !errors.As(err, &corrupt) {
			return nil, err
		}
		response.Entries = append(response.Entries, &csi.ListVolumesResponse_Entry{
			Volume: d.csiVolume(file, v), Status: &csi.ListVolumesResponse_VolumeStatus{},
		})
	}
	return response, nil
}

// ControllerGetVolume returns a volume with an empty status, or NotFound.
func (d *Driver) ControllerGetVolume(_ context.Context, request *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume ID is missing")
	}
	file, v, err := d.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeResponse{Volume: d.csiVolume(file, v), Status: &csi.ControllerGetVolumeResponse_VolumeStatus{}}, nil
}

// ValidateVolumeCapabilities confirms the capabilities that a volume supports.
func (d *Driver) ValidateVolumeCapabilities(_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if request.GetVolumeId() == "" || len(request.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "the volume ID or the capabilities are missing")
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
		return &csi.ValidateVolumeCapabilitiesResponse{Message: "it is " + describeContent(v.Filesystem)}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeCapabilities: request.GetVolumeCapabilities(), VolumeContext: request.GetVolumeContext(),
		Parameters: request.GetParameters(), MutableParameters: request.GetMutableParameters(),
	}}, nil
}

// ListSnapshots lists all snapshots on this node, the snapshots of one volume, or a single
// snapshot.
func (d *Driver) ListSnapshots(_ context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	var errs []error
	snapshots := map[string]snapshot{}
	var files []string
	for file, s := range d.snapshots.all(&errs) {
		if s.State != stateReady || request.GetSourceVolumeId() != "" && request.GetSourceVolumeId() != s.Volume ||
			request.GetSnapshotId() != "" && request.GetSnapshotId() != d.handle(file) {
			continue
		}
		files, snapshots[file] = append(files, file), s
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	files, next, err := page(files, request.GetStartingToken(), request.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	response := &csi.ListSnapshotsResponse{NextToken: next}
	for _, file := range files {
		response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: d.csiSnapshot(file, snapshots[file])})
	}
	return response, nil
}

// GetSnapshot returns a ready snapshot. For any other snapshot, it returns NotFound.
func (d *Driver) GetSnapshot(_ context.Context, request *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	if request.GetSnapshotId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the snapshot ID is missing")
	}
	file, s, err := d.snapshot(request.GetSnapshotId())
	if err != nil {
		return nil, err
	}
	return &csi.GetSnapshotResponse{Snapshot: d.csiSnapshot(file, s)}, nil
}
