package volumeplugin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/kubernetes/pkg/volume"
	volumetypes "k8s.io/kubernetes/pkg/volume/util/types"
	"k8s.io/mount-utils"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// GetDeviceMountPath returns the path where the volume's device is mounted for all pods on the
// node.
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

// deviceDir returns the path where a volume's device is mounted. name is the volume's storage name.
func (p *plugin) deviceDir(name string) string {
	return filepath.Join(p.host.GetPluginDir(pluginDirName), p.name, "mounts", name)
}

// marker returns the path of the file that marks an interrupted mount at a device's mount path.
func (d device) marker(deviceMountPath string) string {
	return filepath.Join(d.plugin.host.GetPluginDir(pluginDirName), d.plugin.name, "mounting", filepath.Base(deviceMountPath))
}

// MountDevice mounts the attached device.
func (a *attacher) MountDevice(spec *volume.Spec, devicePath, deviceMountPath string, _ volume.DeviceMounterArgs) error {
	if complete, err := flexvolume.MountComplete(deviceMountPath, a.marker(deviceMountPath)); complete {
		return nil
	} else if err != nil {
		return transientError(err)
	}
	ctx := context.Background()
	driver, err := a.plugin.ready(ctx)
	if err != nil {
		return transientError(err)
	}
	vol, err := a.volume(spec)
	if err != nil {
		return transientError(err)
	}
	return a.plugin.mountError(driver.Stage(ctx, vol, devicePath, deviceMountPath, a.marker(deviceMountPath)))
}

// UnmountDevice undoes MountDevice. It also detaches the volume if an earlier process on this node
// attached the volume itself.
func (d *detacher) UnmountDevice(deviceMountPath string) error {
	driver, err := d.plugin.inUse()
	if err != nil {
		return err
	}
	if err := driver.Unstage(context.Background(), deviceMountPath, d.marker(deviceMountPath)); err != nil {
		return d.plugin.explain(err)
	}
	stale := d.plugin.attachment(filepath.Base(deviceMountPath), d.plugin.host.GetNodeName())
	if d.plugin.attachments.isRecorded(stale) {
		if _, err := d.plugin.attachments.release(context.Background(), d.plugin.registry, stale); err != nil {
			return err
		}
	}
	d.plugin.nameCache.deviceUnmounted(stale.volume)
	return nil
}

// GetDeviceMountRefs returns the device's other mount points, which pods use.
func (p *plugin) GetDeviceMountRefs(deviceMountPath string) ([]string, error) {
	return mount.New("").GetMountRefs(deviceMountPath)
}

// mountError converts the error of a driver's mount call for the kubelet. The error is uncertain if
// something might be mounted, so that the kubelet undoes the mount even if the pod is deleted.
// Otherwise, the error is final.
func (p *plugin) mountError(err error) error {
	explained := p.explain(err)
	switch kind := flexvolume.KindOf(err); {
	case errors.Is(err, flexvolume.ErrPartialMount), kind == flexvolume.KindTimeout, kind == flexvolume.KindCanceled:
		return volumetypes.NewUncertainProgressError(explained.Error())
	case kind == flexvolume.KindBusy, kind == flexvolume.KindStart:
		return transientError(explained)
	}
	return explained
}

// explain adds the node's name, and the command that prints the driver's earlier calls, to the
// error of a driver call. Kubernetes shows the text in the events of pods and claims.
func (p *plugin) explain(err error) error {
	if flexvolume.KindOf(err) == "" {
		return err
	}
	if node := p.host.GetNodeName(); node != "" {
		return fmt.Errorf("on node %q: %w; to see the driver's earlier calls, run slipway flexvolume history %s there", node, err, p.name)
	}
	return fmt.Errorf("%w; to see the driver's earlier calls, run slipway flexvolume history %s on the master", err, p.name)
}

// transientError marks an error that occurred before the driver was called, so that the kubelet
// keeps the state that resulted from the previous call.
func transientError(err error) error { return volumetypes.NewTransientOperationFailure(err.Error()) }
