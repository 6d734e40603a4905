package fake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// NodeStageVolume records a volume's staging path.
func (d *Driver) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := d.needOnNode(csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME); err != nil {
		return nil, err
	}
	if r.GetVolumeId() == "" || r.GetStagingTargetPath() == "" || r.GetVolumeCapability() == nil {
		return nil, missing("volume ID, path and capability")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	v, err := d.volume(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := d.checkAttached(v); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, record(v.Staged, r.GetStagingTargetPath(), access(r.GetVolumeCapability(), false))
}

// NodeUnstageVolume undoes NodeStageVolume.
func (d *Driver) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := d.needOnNode(csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME); err != nil {
		return nil, err
	}
	if r.GetVolumeId() == "" || r.GetStagingTargetPath() == "" {
		return nil, missing("volume ID and path")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.volumes[r.GetVolumeId()]; v != nil {
		if len(v.Published) > 0 {
			return nil, status.Errorf(codes.FailedPrecondition, "volume %q is published", v.Name)
		}
		delete(v.Staged, r.GetStagingTargetPath())
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume publishes a volume to a pod. It creates inline volumes, because the kubelet
// does not call CreateVolume for them.
func (d *Driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetTargetPath() == "" || r.GetVolumeCapability() == nil {
		return nil, missing("volume ID, path and capability")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	v, err := d.volume(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := d.checkPublish(v, r); err != nil {
		return nil, err
	}
	if _, done := v.Published[r.GetTargetPath()]; !done {
		if err := d.mount(v, r.GetTargetPath(), r.GetReadonly()); err != nil {
			return nil, status.Errorf(codes.Internal, "mount volume %q: %v", v.Name, err)
		}
	}
	return &csi.NodePublishVolumeResponse{}, record(v.Published, r.GetTargetPath(), access(r.GetVolumeCapability(), r.GetReadonly()))
}

// checkPublish returns an error if a volume cannot be published. The caller must hold the lock.
func (d *Driver) checkPublish(v *Volume, r *csi.NodePublishVolumeRequest) error {
	if err := d.checkAttached(v); err != nil {
		return err
	}
	if d.needOnNode(csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME) == nil {
		if _, staged := v.Staged[r.GetStagingTargetPath()]; !staged {
			return status.Errorf(codes.FailedPrecondition, "volume %q is not staged at %q", v.Name, r.GetStagingTargetPath())
		}
	}
	single := r.GetVolumeCapability().GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	if _, ok := v.Published[r.GetTargetPath()]; single && !ok && len(v.Published) > 0 {
		return status.Errorf(codes.FailedPrecondition, "volume %q is published elsewhere", v.Name)
	}
	if v.Block && d.options.Dir != "" {
		return status.Error(codes.InvalidArgument, "a directory volume cannot be a block device")
	}
	return nil
}

// checkAttached returns an error if a volume must be attached to this node but is not attached. The
// caller must hold the lock.
func (d *Driver) checkAttached(v *Volume) error {
	_, attached := v.Attached[d.options.NodeID]
	if d.has(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME) && !attached {
		return status.Errorf(codes.FailedPrecondition, "volume %q is not attached to node %q", v.Name, d.options.NodeID)
	}
	return nil
}

// record records an access to a path. It returns an error if another kind of access is already
// recorded for the path.
func record(paths map[string]string, path, access string) error {
	if before, ok := paths[path]; ok && before != access {
		return status.Errorf(codes.AlreadyExists, "path %q is in use with different access", path)
	}
	paths[path] = access
	return nil
}

func access(c *csi.VolumeCapability, readOnly bool) string {
	return fmt.Sprintf("%s read-only=%t", protojson.Format(c), readOnly)
}

// NodeUnpublishVolume unpublishes a volume from a pod and removes the target path.
func (d *Driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetTargetPath() == "" {
		return nil, missing("volume ID and path")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := unmount(r.GetTargetPath()); err != nil {
		return nil, status.Errorf(codes.Internal, "unmount %q: %v", r.GetTargetPath(), err)
	}
	if v := d.volumes[r.GetVolumeId()]; v != nil {
		delete(v.Published, r.GetTargetPath())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// mount creates the target and bind-mounts the volume's directory, if there is one.
func (d *Driver) mount(v *Volume, target string, readOnly bool) error {
	if err := os.MkdirAll(target, 0o755); err != nil || d.options.Dir == "" {
		return err
	}
	if err := unix.Mount(filepath.Join(d.options.Dir, v.ID), target, "", unix.MS_BIND, ""); err != nil || !readOnly {
		return err
	}
	return unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
}

func unmount(target string) error {
	if err := unix.Unmount(target, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// NodeGetVolumeStats returns a volume's size. Its usage is always zero.
func (d *Driver) NodeGetVolumeStats(_ context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := d.needOnNode(csi.NodeServiceCapability_RPC_GET_VOLUME_STATS); err != nil {
		return nil, err
	}
	v, unlock, err := d.published(r.GetVolumeId(), r.GetVolumePath())
	if err != nil {
		return nil, err
	}
	defer unlock()
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: v.Size, Available: v.Size}}}, nil
}

// NodeExpandVolume returns the volume's size.
func (d *Driver) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if err := d.needOnNode(csi.NodeServiceCapability_RPC_EXPAND_VOLUME); err != nil {
		return nil, err
	}
	v, unlock, err := d.published(r.GetVolumeId(), r.GetVolumePath())
	if err != nil {
		return nil, err
	}
	defer unlock()
	return &csi.NodeExpandVolumeResponse{CapacityBytes: v.Size}, nil
}

// published returns a volume that is staged or published at a path. The caller must call unlock,
// unless published returns an error.
func (d *Driver) published(id, path string) (v *Volume, unlock func(), err error) {
	if id == "" || path == "" {
		return nil, nil, missing("volume ID and path")
	}
	d.mu.Lock()
	v, err = d.volume(id)
	if err == nil {
		_, staged := v.Staged[path]
		if _, published := v.Published[path]; !staged && !published {
			err = status.Errorf(codes.NotFound, "volume %q is not at %q", v.Name, path)
		}
	}
	if err != nil {
		d.mu.Unlock()
		return nil, nil, err
	}
	return v, d.mu.Unlock, nil
}
