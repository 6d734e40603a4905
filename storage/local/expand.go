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

// ControllerExpandVolume makes the image of a volume larger. Its device and file system follow in NodeExpandVolume, or when the volume is staged next.
func (d *Driver) ControllerExpandVolume(_ context.Context, request *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if request.GetVolumeId() == "" || request.GetCapacityRange() == nil {
		return nil, status.Error(codes.InvalidArgument, "a volume and a capacity must be given")
	}
	file, v, release, err := d.turn(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	size, err := sizeIn(request.GetCapacityRange(), v.Size)
	if err != nil {
		return nil, err
	}
	if err := d.enlarge(file, v, size); err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: size, NodeExpansionRequired: true}, nil
}

// enlarge promises the growth of a volume, then grows its image: a process that is killed between leaves the rest to a repeated request or to the next
// time that the volume is staged.
func (d *Driver) enlarge(file string, v volume, size int64) error {
	if size > v.Size {
		d.promising.Lock()
		defer d.promising.Unlock()
		if err := d.promise(size - v.Size); err != nil {
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

// ControllerModifyVolume changes when a volume takes its space from the disk. What a thick volume has taken, a thin one gives back as files are removed.
func (d *Driver) ControllerModifyVolume(_ context.Context, request *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume is given")
	}
	file, v, release, err := d.turn(request.GetVolumeId())
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

// NodeExpandVolume gives a volume's device, and the file system on it, the size that the volume has. Both stay in use.
func (d *Driver) NodeExpandVolume(_ context.Context, request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if request.GetVolumeId() == "" || request.GetVolumePath() == "" {
		return nil, status.Error(codes.InvalidArgument, "a volume and its path must be given")
	}
	file, v, release, err := d.turn(request.GetVolumeId())
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
	mounts, err := filesystem.Of(device.Name())
	if err != nil {
		return nil, err
	}
	if dir := mountedAt(mounts); dir != "" && v.Filesystem != "" {
		err := filesystem.Grow(v.Filesystem, dir, device)
		if errors.Is(err, filesystem.ErrMounted) {
			return nil, status.Errorf(codes.FailedPrecondition, "%v: it grows when the volume is staged next, so end the pods that use it", err)
		}
		if err != nil {
			return nil, err
		}
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: v.Size}, nil
}
