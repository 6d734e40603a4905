package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/loop"
)

// healthIssue is a problem with a volume.
type healthIssue struct {
	kind            csi.VolumeHealthErrorType
	reason, message string
}

// diagnose returns a volume's problems. The error is fs.ErrNotExist if the volume does not exist.
func (d *Driver) diagnose(file string) ([]healthIssue, error) {
	v, err := d.volumes.load(file)
	var corrupt *corruptRecordError
	if errors.As(err, &corrupt) {
		return []healthIssue{{csi.VolumeHealthErrorType_INACCESSIBLE, "RecordDamaged", err.Error()}}, nil
	}
	if err != nil || v.State != stateReady {
		return nil, err
	}
	path := d.volumes.image(file)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []healthIssue{{csi.VolumeHealthErrorType_DATA_LOSS, "ImageMissing", fmt.Sprintf("image %q does not exist", path)}}, nil
	case err != nil:
		return []healthIssue{{csi.VolumeHealthErrorType_INACCESSIBLE, "ImageUnreadable", err.Error()}}, nil
	case info.Size() < v.Size:
		return []healthIssue{{csi.VolumeHealthErrorType_DEGRADED, "ImageShort", fmt.Sprintf("image %q has %d of %d bytes: an expansion was interrupted", path, info.Size(), v.Size)}}, nil
	}
	return d.diagnoseMounts(path)
}

// diagnoseMounts returns an issue for a file system that the kernel has shut down because of an
// error.
func (d *Driver) diagnoseMounts(path string) ([]healthIssue, error) {
	device, err := loop.Find(path)
	if err != nil || device == "" {
		return nil, err
	}
	mounts, err := filesystem.MountsOf(device)
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		if isShutDown(m) {
			return []healthIssue{{csi.VolumeHealthErrorType_INACCESSIBLE, "FilesystemError", fmt.Sprintf(
				"the kernel shut down the file system on %s because of an error; see the kernel log, and stop the pods so that the file system is checked", device)}}, nil
		}
	}
	return nil, nil
}

func healthOf(handle string, issues []healthIssue) *csi.VolumeHealth {
	health := &csi.VolumeHealth{VolumeId: handle}
	for _, p := range issues {
		health.HealthStatuses = append(health.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{Status: p.kind, Reason: p.reason, Message: p.message})
	}
	return health
}

// volumeHealth returns a volume's health.
func (d *Driver) volumeHealth(handle string) (*csi.VolumeHealth, error) {
	if handle == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume ID is missing")
	}
	file, err := d.localFile(handle)
	if err != nil {
		return nil, err
	}
	if file == "" {
		file = fileName(handle)
	}
	issues, err := d.diagnose(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.NotFound, "volume %q does not exist", handle)
	}
	if err != nil {
		return nil, err
	}
	return healthOf(handle, issues), nil
}

// ControllerGetVolumeHealth returns a volume's health.
func (d *Driver) ControllerGetVolumeHealth(_ context.Context, request *csi.ControllerGetVolumeHealthRequest) (*csi.ControllerGetVolumeHealthResponse, error) {
	health, err := d.volumeHealth(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeHealthResponse{VolumeHealth: health}, nil
}

// NodeGetVolumeHealth returns the health of a volume on this node.
func (d *Driver) NodeGetVolumeHealth(_ context.Context, request *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	health, err := d.volumeHealth(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: health}, nil
}

// ControllerListVolumeHealth lists the volumes that have problems.
func (d *Driver) ControllerListVolumeHealth(_ context.Context, request *csi.ControllerListVolumeHealthRequest) (*csi.ControllerListVolumeHealthResponse, error) {
	volumes, err := d.volumes.files()
	if err != nil {
		return nil, err
	}
	var files []string
	issuesByFile := map[string][]healthIssue{}
	for _, file := range volumes {
		issues, err := d.diagnose(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(issues) > 0 {
			files, issuesByFile[file] = append(files, file), issues
		}
	}
	files, next, err := page(files, request.GetStartingToken(), request.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	response := &csi.ControllerListVolumeHealthResponse{NextToken: next}
	for _, file := range files {
		response.Entries = append(response.Entries, healthOf(d.handle(file), issuesByFile[file]))
	}
	return response, nil
}

// NodeGetStorageHealth reports whether more capacity is committed than the disk has. In this case,
// volumes might run out of space.
func (d *Driver) NodeGetStorageHealth(context.Context, *csi.NodeGetStorageHealthRequest) (*csi.NodeGetStorageHealthResponse, error) {
	available, err := d.available()
	if err != nil {
		return nil, err
	}
	response := &csi.NodeGetStorageHealthResponse{}
	if available < 0 {
		response.BackendHealth = append(response.BackendHealth, &csi.NodeGetStorageHealthResponse_StorageBackendHealth{
			Status: csi.StorageHealthErrorType_STORAGE_DEGRADED, Reason: "DiskShort",
			Message: fmt.Sprintf("the disk of %q lacks %d bytes of the capacity committed to volumes; free some space", d.volumes.dir, -available),
		})
	}
	return response, nil
}
