package local

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/loop"
)

// NodeGetVolumeStats returns a volume's usage.
func (d *Driver) NodeGetVolumeStats(_ context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	handle, path := request.GetVolumeId(), request.GetVolumePath()
	if handle == "" || path == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume ID or the volume path is missing")
	}
	file, v, err := d.volume(handle)
	if status.Code(err) == codes.NotFound && d.isCacheAt(path) {
		return usage(path)
	}
	if err != nil {
		return nil, err
	}
	device, err := loop.Find(d.volumes.image(file))
	if err != nil {
		return nil, err
	}
	isPublished := false
	if device != "" {
		if isPublished, err = isMounted(device, path, false); err != nil {
			return nil, err
		}
	}
	if !isPublished {
		return nil, status.Errorf(codes.NotFound, "volume %q is not published at %q", handle, path)
	}
	if v.Filesystem == "" {
		return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: v.Size}}}, nil
	}
	return usage(path)
}

// usage returns the usage of the file system at path.
func usage(path string) (*csi.NodeGetVolumeStatsResponse, error) {
	space, err := filesystem.Measure(path)
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: space.Bytes, Available: space.AvailableBytes, Used: space.Bytes - space.FreeBytes},
		{Unit: csi.VolumeUsage_INODES, Total: space.Inodes, Available: space.FreeInodes, Used: space.Inodes - space.FreeInodes},
	}}, nil
}
