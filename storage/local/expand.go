package local

import (
	"context"
	"errors"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/image"
	"github.com/slipway-platform/slipway/storage/local/loop"
)

// ControllerExpandVolume expands a volume's image. NodeExpandVolume or the next NodeStageVolume
// expands the device and the file system.
func (d *Driver) ControllerExpandVolume(_ context.Context, request *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if request.GetVolumeId() == "" || request.GetCapacityRange() == nil {
		return nil, status.Error(codes.InvalidArgument, "the volume ID or the capacity range is missing")
	}
	file, v, release, err := d.lockVolume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	size, err := sizeIn(request.GetCapacityRange(), v.Size)
	if err != nil {
		return nil, err
	}
	if err := d.expandImage(file, v, size); err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: size, NodeExpansionRequired: true}, nil
}

// expandImage commits the new size, then expands the image. If the process is killed after
// committing the size but before expanding the image, a repeated request or the next staging
// expands the image.
func (d *Driver) expandImage(file string, v volume, size int64) error {
	if size > v.Size {
		d.capacityMu.Lock()
		defer d.capacityMu.Unlock()
		if err := d.checkCapacity(size - v.Size); err != nil {
			return err
		}
		v.Size = size
		if err := d.volumes.save(file, v); err != nil {
			return err
		}
	}
	if err := image.Grow(d.volumes.image(file), size); err != nil {
		return err
	}
	if v.Allocation == thick {
		return image.Allocate(d.volumes.image(file))
	}
	return nil
}

// ControllerModifyVolume changes when a volume allocates disk space. A volume that is changed from
// thick to thin frees space as files are deleted.
func (d *Driver) ControllerModifyVolume(_ context.Context, request *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume ID is missing")
	}
	file, v, release, err := d.lockVolume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	if v.Allocation, err = parseParameters(map[string]string{allocationKey: string(v.Allocation)}, request.GetMutableParameters()); err != nil {
		return nil, err
	}
	if v.Allocation == thick {
		if err := image.Allocate(d.volumes.image(file)); err != nil {
			return nil, err
		}
	}
	return &csi.ControllerModifyVolumeResponse{}, d.volumes.save(file, v)
}

// NodeExpandVolume expands the device and file system of a volume to the volume's size while they
// are in use.
func (d *Driver) NodeExpandVolume(_ context.Context, request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if request.GetVolumeId() == "" || request.GetVolumePath() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume ID or the volume path is missing")
	}
	file, v, release, err := d.lockVolume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	device, err := loop.Open(d.volumes.image(file))
	if err != nil {
		return nil, err
	}
	if device == nil {
		return nil, status.Errorf(codes.NotFound, "volume %q is not staged on this node", request.GetVolumeId())
	}
	defer device.Close()
	if err := loop.Refresh(device); err != nil {
		return nil, err
	}
	mounts, err := filesystem.MountsOf(device.Name())
	if err != nil {
		return nil, err
	}
	if dir := mountPoint(mounts); dir != "" && v.Filesystem != "" {
		err := filesystem.Grow(v.Filesystem, dir, device)
		if errors.Is(err, filesystem.ErrMounted) {
			return nil, status.Errorf(codes.FailedPrecondition, "%v; the file system grows when the volume is staged again, so stop the pods that use it", err)
		}
		if err != nil {
			return nil, err
		}
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: v.Size}, nil
}
