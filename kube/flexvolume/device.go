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
	return filepath.Join(p.host.GetPluginDir(pluginDirName), p.name, "mounts", name), nil
}

// marker is the file that shows an interrupted mount at a device's directory.
func (d device) marker(deviceMountPath string) string {
	return filepath.Join(d.plugin.host.GetPluginDir(pluginDirName), d.plugin.name, "mounting", filepath.Base(deviceMountPath))
}

// MountDevice mounts the attached device.
func (a *attacher) MountDevice(spec *volume.Spec, devicePath, deviceMountPath string, _ volume.DeviceMounterArgs) error {
	ctx := context.Background()
	driver, err := a.plugin.ready(ctx)
	if err != nil {
		return err
	}
	wanted, err := a.volume(spec)
	if err != nil {
		return err
	}
	return uncertain(driver.Stage(ctx, wanted, devicePath, deviceMountPath, a.marker(deviceMountPath)))
}

// UnmountDevice undoes MountDevice.
func (d *detacher) UnmountDevice(deviceMountPath string) error {
	driver, err := d.plugin.inUse()
	if err != nil {
		return err
	}
	return driver.Unstage(context.Background(), deviceMountPath, d.marker(deviceMountPath))
}

// GetDeviceMountRefs are the other places at which the device mounted there is mounted: the pods that use it.
func (p *plugin) GetDeviceMountRefs(deviceMountPath string) ([]string, error) {
	return mount.New("").GetMountRefs(deviceMountPath)
}

// uncertain marks an error after which something may be mounted, so that kubelet undoes it even if the pod goes away meanwhile.
func uncertain(err error) error {
	if errors.Is(err, engine.ErrHalfDone) || engine.KindOf(err) == engine.KindTimeout {
		return volumetypes.NewUncertainProgressError(err.Error())
	}
	return err
}
