package flexvolume

import (
	"context"
	"errors"
	"path/filepath"

	"k8s.io/kubernetes/pkg/volume"
	volumetypes "k8s.io/kubernetes/pkg/volume/util/types"
	"k8s.io/mount-utils"

	engine "github.com/slipway-platform/slipway/storage/flexvolume"
)

// GetDeviceMountPath is where the volume's device is mounted for all pods of the node.
func (d device) GetDeviceMountPath(spec *volume.Spec) (string, error) {
	return d.plugin.deviceMountPath(spec)
}

func (p *plugin) deviceMountPath(spec *volume.Spec) (string, error) {
	name, err := p.GetVolumeName(spec)
	if err != nil {
		return "", err
	}
	return p.deviceDir(name), nil
}

// deviceDir is where the device of a volume is mounted, by the volume's name in its storage.
func (p *plugin) deviceDir(name string) string {
	return filepath.Join(p.host.GetPluginDir(pluginDirName), p.name, "mounts", name)
}

// marker is the file that shows an interrupted mount at a device's directory.
func (d device) marker(deviceMountPath string) string {
	return filepath.Join(d.plugin.host.GetPluginDir(pluginDirName), d.plugin.name, "mounting", filepath.Base(deviceMountPath))
}

// MountDevice mounts the attached device.
func (a *attacher) MountDevice(spec *volume.Spec, devicePath, deviceMountPath string, _ volume.DeviceMounterArgs) error {
	if done, err := engine.MountComplete(deviceMountPath, a.marker(deviceMountPath)); done {
		return nil
	} else if err != nil {
		return notCalled(err)
	}
	ctx := context.Background()
	driver, err := a.plugin.ready(ctx)
	if err != nil {
		return notCalled(err)
	}
	wanted, err := a.volume(spec)
	if err != nil {
		return notCalled(err)
	}
	return outcome(driver.Stage(ctx, wanted, devicePath, deviceMountPath, a.marker(deviceMountPath)))
}

// UnmountDevice undoes MountDevice, and detaches what an earlier process of this node has attached by itself.
func (d *detacher) UnmountDevice(deviceMountPath string) error {
	driver, err := d.plugin.inUse()
	if err != nil {
		return err
	}
	if err := driver.Unstage(context.Background(), deviceMountPath, d.marker(deviceMountPath)); err != nil {
		return err
	}
	left := d.plugin.attachment(filepath.Base(deviceMountPath), d.plugin.host.GetNodeName())
	if !d.plugin.attachments.noted(left) {
		return nil
	}
	_, err = d.plugin.attachments.leave(left, func() error { return detach(context.Background(), d.plugin.registry, left) })
	return err
}

// GetDeviceMountRefs are the other places at which the device mounted there is mounted: the pods that use it.
func (p *plugin) GetDeviceMountRefs(deviceMountPath string) ([]string, error) {
	return mount.New("").GetMountRefs(deviceMountPath)
}

// outcome marks the error of a driver's mount for kubelet. It is uncertain where something may be mounted, so that kubelet undoes it even if the pod
// goes away meanwhile; final where nothing is.
func outcome(err error) error {
	switch kind := engine.KindOf(err); {
	case errors.Is(err, engine.ErrPartialMount), kind == engine.KindTimeout, kind == engine.KindCanceled:
		return volumetypes.NewUncertainProgressError(err.Error())
	case kind == engine.KindBusy, kind == engine.KindStart:
		return notCalled(err)
	}
	return err
}

// notCalled marks the error of a mount for which the driver was not called: what kubelet knows from the call before is still true.
func notCalled(err error) error { return volumetypes.NewTransientOperationFailure(err.Error()) }
