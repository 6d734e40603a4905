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

// problem is one thing that is wrong with a volume.
type problem struct {
	kind            csi.VolumeHealthErrorType
	reason, message string
}

// diagnose looks for what is wrong with a volume. The error of one that does not exist is fs.ErrNotExist.
func (d *Driver) diagnose(file string) ([]problem, error) {
	v, err := d.volumes.load(file)
	var damaged *damagedError
	if errors.As(err, &damaged) {
		return []problem{{csi.VolumeHealthErrorType_INACCESSIBLE, "RecordDamaged", err.Error()}}, nil
	}
	if err != nil || v.State != stateReady {
		return nil, err
	}
	path := d.volumes.image(file)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []problem{{csi.VolumeHealthErrorType_DATA_LOSS, "ImageMissing", fmt.Sprintf("image %q does not exist", path)}}, nil
	case err != nil:
		return []problem{{csi.VolumeHealthErrorType_INACCESSIBLE, "ImageUnreadable", err.Error()}}, nil
	case info.Size() < v.Size:
		return []problem{{csi.VolumeHealthErrorType_DEGRADED, "ImageShort", fmt.Sprintf("image %q has %d of %d bytes: an expansion was broken off", path, info.Size(), v.Size)}}, nil
	}
	return d.diagnoseMounts(path)
}

// diagnoseMounts finds a file system that the kernel has stopped writing to because of an error.
func (d *Driver) diagnoseMounts(path string) ([]problem, error) {
	device, err := loop.Find(path)
	if err != nil || device == "" {
		return nil, err
	}
	mounts, err := filesystem.Of(device)
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		if stopped(m) {
			return []problem{{csi.VolumeHealthErrorType_INACCESSIBLE, "FilesystemError", fmt.Sprintf(
				"the kernel stopped the file system on %s because of an error: see its log, and end the pods so that it is checked", device)}}, nil
		}
	}
	return nil, nil
}

func healthOf(handle string, problems []problem) *csi.VolumeHealth {
	health := &csi.VolumeHealth{VolumeId: handle}
	for _, p := range problems {
		health.HealthStatuses = append(health.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{Status: p.kind, Reason: p.reason, Message: p.message})
	}
	return health
}

// volumeHealth tells what is wrong with the volume of a handle.
func (d *Driver) volumeHealth(handle string) (*csi.VolumeHealth, error) {
	if handle == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume is given")
	}
	file, err := d.here(handle)
	if err != nil {
		return nil, err
	}
	if file == "" {
		file = fileName(handle)
	}
	problems, err := d.diagnose(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.NotFound, "there is no volume %q", handle)
	}
	if err != nil {
		return nil, err
	}
	return healthOf(handle, problems), nil
}

// ControllerGetVolumeHealth tells what is wrong with a volume.
func (d *Driver) ControllerGetVolumeHealth(_ context.Context, request *csi.ControllerGetVolumeHealthRequest) (*csi.ControllerGetVolumeHealthResponse, error) {
	health, err := d.volumeHealth(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeHealthResponse{VolumeHealth: health}, nil
}

// NodeGetVolumeHealth tells what is wrong with a volume, which is on this node.
func (d *Driver) NodeGetVolumeHealth(_ context.Context, request *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	health, err := d.volumeHealth(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: health}, nil
}

// ControllerListVolumeHealth lists the volumes with which something is wrong.
func (d *Driver) ControllerListVolumeHealth(_ context.Context, request *csi.ControllerListVolumeHealthRequest) (*csi.ControllerListVolumeHealthResponse, error) {
	all, err := d.volumes.files()
	if err != nil {
		return nil, err
	}
	var ill []string
	found := map[string][]problem{}
	for _, file := range all {
		problems, err := d.diagnose(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(problems) > 0 {
			ill, found[file] = append(ill, file), problems
		}
	}
	ill, next, err := page(ill, request.GetStartingToken(), request.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	response := &csi.ControllerListVolumeHealthResponse{NextToken: next}
	for _, file := range ill {
		response.Entries = append(response.Entries, healthOf(d.handle(file), found[file]))
	}
	return response, nil
}

// NodeGetStorageHealth tells when more was promised than the disk has now: volumes may then find it full.
func (d *Driver) NodeGetStorageHealth(context.Context, *csi.NodeGetStorageHealthRequest) (*csi.NodeGetStorageHealthResponse, error) {
	available, err := d.available()
	if err != nil {
		return nil, err
	}
	response := &csi.NodeGetStorageHealthResponse{}
	if available < 0 {
		response.BackendHealth = append(response.BackendHealth, &csi.NodeGetStorageHealthResponse_StorageBackendHealth{
			Status: csi.StorageHealthErrorType_STORAGE_DEGRADED, Reason: "DiskShort",
			Message: fmt.Sprintf("the disk of %q lacks %d bytes of what was promised to volumes: free some", d.volumes.dir, -available),
		})
	}
	return response, nil
}
