package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/util"
	"k8s.io/mount-utils"

	engine "github.com/slipway-platform/slipway/storage/flexvolume"
)

// RequiresFSResize says whether the file system is grown after the volume.
func (p *plugin) RequiresFSResize() bool {
	driver, err := p.registry.InUse(p.name)
	return err == nil && driver.Capabilities().RequiresFSResize
}

// ExpandVolumeDevice makes the volume larger in its storage. A driver without the operation is taken to need nothing for it.
//
// A driver may make the volume larger than asked for, but where a file system is grown after it, the size asked for is returned:
// Kubernetes takes a PersistentVolume that is larger than its claim for one whose expansion has not ended.
func (p *plugin) ExpandVolumeDevice(spec *volume.Spec, newSize, oldSize resource.Quantity) (resource.Quantity, error) {
	ctx := context.Background()
	driver, err := p.ready(ctx)
	if err != nil {
		return oldSize, err
	}
	wanted, err := device{p}.volume(spec)
	if err != nil {
		return oldSize, err
	}
	dir, err := p.deviceMountPath(spec)
	if err != nil {
		return oldSize, err
	}
	size, err := driver.ExpandVolume(ctx, wanted, dir, newSize.Value(), oldSize.Value())
	switch {
	case errors.Is(err, engine.ErrNotSupported):
		return newSize, nil
	case err != nil:
		return oldSize, err
	case size < newSize.Value():
		return oldSize, fmt.Errorf("expand volume %q: FlexVolume driver %q reports success and a size of %d bytes, less than the %d asked for",
			spec.Name(), p.name, size, newSize.Value())
	case driver.Capabilities().RequiresFSResize:
		return newSize, nil
	}
	return *resource.NewQuantity(size, newSize.Format), nil
}

// NodeExpand makes the file system on the node as large as the volume, with the driver or, where that lacks the operation, with the
// file system's own program. Without a device, as of a driver that has only mount and unmount, there is nothing to grow then.
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
	wanted, err := device{p}.volume(spec)
	if err != nil {
		return false, err
	}
	device := mountedDevice(options.DevicePath, options.DeviceStagePath)
	err = driver.ExpandFS(ctx, wanted, device, options.DeviceMountPath, options.NewSize.Value(), options.OldSize.Value())
	if !errors.Is(err, engine.ErrNotSupported) {
		return err == nil, err
	}
	if device == "" {
		return true, nil
	}
	if _, err := util.GenericResizeFS(p.host, device, options.DeviceMountPath); err != nil {
		return false, fmt.Errorf("expand file system of volume %q: %w", spec.Name(), err)
	}
	return true, nil
}

// mountedDevice is the device that is mounted at dir, where it is not known. Kubelet forgets those of drivers whose attach does not name one when
// it is restarted; the mount table still has them.
func mountedDevice(known, dir string) string {
	if known != "" || dir == "" {
		return known
	}
	source, _, err := mount.GetDeviceNameFromMount(mount.New(""), dir)
	if err != nil || !strings.HasPrefix(source, "/dev/") {
		return ""
	}
	return source
}
