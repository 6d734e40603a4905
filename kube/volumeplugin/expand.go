package volumeplugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/util"
	"k8s.io/mount-utils"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// RequiresFSResize reports whether the file system must be expanded after the volume has been
// expanded.
func (p *plugin) RequiresFSResize() bool {
	driver, err := p.registry.InUse(p.name)
	return err == nil && driver.Capabilities().RequiresFSResize
}

// ExpandVolumeDevice expands the volume in its storage. If the driver does not support this
// operation, ExpandVolumeDevice reports success.
//
// A driver can expand the volume to more than the requested size. If the file system must be
// expanded after that, ExpandVolumeDevice still returns the requested size. Kubernetes treats an
// expansion as incomplete while the PersistentVolume is larger than its claim.
func (p *plugin) ExpandVolumeDevice(spec *volume.Spec, newSize, oldSize resource.Quantity) (resource.Quantity, error) {
	ctx := context.Background()
	driver, err := p.ready(ctx)
	if err != nil {
		return oldSize, err
	}
	vol, err := device{p}.volume(spec)
	if err != nil {
		return oldSize, err
	}
	dir, err := p.deviceMountPath(spec)
	if err != nil {
		return oldSize, err
	}
	name, err := p.GetVolumeName(spec)
	if err != nil {
		return oldSize, err
	}
	size := int64(0)
	c := call{attachment: p.attachment(name, ""), timeout: driver.Timeout(flexvolume.OpExpandVolume)}
	err = p.attachments.expand(c, func(ctx context.Context) (err error) {
		size, err = driver.ExpandVolume(ctx, vol, dir, newSize.Value(), oldSize.Value())
		return err
	})
	switch {
	case errors.Is(err, flexvolume.ErrNotSupported):
		return newSize, nil
	case err != nil:
		return oldSize, p.explain(err)
	case size < newSize.Value():
		return oldSize, fmt.Errorf("expand volume %q: FlexVolume driver %q reports success and a size of %d bytes, less than the requested %d",
			spec.Name(), p.name, size, newSize.Value())
	case driver.Capabilities().RequiresFSResize:
		return newSize, nil
	}
	return *resource.NewQuantity(size, newSize.Format), nil
}

// NodeExpand expands the file system on the node to the volume's size. It calls the driver or, if
// the driver does not support this operation, the file system's tools. If there is no device, as
// with a driver that supports only mount and unmount, NodeExpand is a no-op.
func (p *plugin) NodeExpand(options volume.NodeResizeOptions) (bool, error) {
	spec := options.VolumeSpec
	if spec.PersistentVolume == nil {
		return false, fmt.Errorf("expand volume %q: it is not a PersistentVolume", spec.Name())
	}
	ctx := context.Background()
	driver, err := p.ready(ctx)
	if err != nil {
		return false, err
	}
	vol, err := device{p}.volume(spec)
	if err != nil {
		return false, err
	}
	device := mountedDevice(options.DevicePath, options.DeviceStagePath)
	err = driver.ExpandFS(ctx, vol, device, options.DeviceMountPath, options.NewSize.Value(), options.OldSize.Value())
	if !errors.Is(err, flexvolume.ErrNotSupported) {
		return err == nil, p.explain(err)
	}
	if device == "" {
		return true, nil
	}
	if _, err := util.GenericResizeFS(p.host, device, options.DeviceMountPath); err != nil {
		return false, fmt.Errorf("expand file system of volume %q: %w", spec.Name(), err)
	}
	return true, nil
}

// mountedDevice returns device or, if device is empty, the device that is mounted at dir. After a
// restart, the kubelet has no record of devices that attach did not return, but the mount table
// still contains them.
func mountedDevice(device, dir string) string {
	if device != "" || dir == "" {
		return device
	}
	source, _, err := mount.GetDeviceNameFromMount(mount.New(""), dir)
	if err != nil || !strings.HasPrefix(source, "/dev/") {
		return ""
	}
	return source
}
