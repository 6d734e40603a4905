// Package volumeplugin connects the FlexVolume engine to Kubernetes. It contains a volume plugin
// for each driver, and the dynamic prober that provides the plugins. The embedded kubelet and
// Slipway's attach-detach controller each have a prober instead of the in-tree prober, so that
// `flexVolume:` works unchanged in PersistentVolumes and pods.
//
// Differences from the in-tree plugin:
//   - The prober never blocks: it returns the current content of the engine's registry.
//   - A volume's name is the driver's response to getvolumename, so that detach receives this name,
//     even after a controller restart. An inline volume without such a response has a name that
//     contains a hash of its options.
//   - A plugin exists as long as a driver with its name exists. It reads the driver's capabilities
//     at each use, so an update applies to new volumes while old volumes can still be unmounted.
//   - After a restart, the kubelet reconstructs a volume with its options, from a file next to the
//     pod's volumes.
//
// Metrics, all with the prefix slipway_flexvolume_:
//   - operation_seconds{driver,operation,status}: histogram of call durations. status is success or
//     error. The response "Not supported" is a success.
//   - operation_errors_total{driver,operation,kind}: kind is the engine's Kind.
//   - operations_in_flight{driver,operation}: calls that are running, or waiting for the volume or
//     a slot.
//   - scans_total{status}: scans of the plugin directory.
//   - scan_seconds: histogram of scan durations.
package volumeplugin

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/volume"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// pluginDirName is the name of the plugin directory in which the kubelet stores the device mounts
// of all FlexVolume drivers.
const pluginDirName = "kubernetes.io/flexvolume"

// readyTimeout is how long an operation waits for a driver's init. After that, the operation fails,
// and Kubernetes retries it.
const readyTimeout = 10 * time.Second

// plugin is the volume plugin for one driver.
type plugin struct {
	name      string
	registry  *flexvolume.Registry
	nameCache *nameCache

	attachments *Attachments
	host        volume.VolumeHost
	lastUse     atomic.Int64 // when CanSupport last found a volume of this driver, in nanoseconds
}

var (
	_ volume.AttachableVolumePlugin     = (*plugin)(nil)
	_ volume.PersistentVolumePlugin     = (*plugin)(nil)
	_ volume.NodeExpandableVolumePlugin = (*plugin)(nil)
	_ volume.ExpandableVolumePlugin     = (*plugin)(nil)
)

// Init sets the host. It is called before all other methods.
func (p *plugin) Init(host volume.VolumeHost) error {
	p.host = host
	return nil
}

// GetPluginName returns the driver's name, which is also the first part of its volumes' unique
// names.
func (p *plugin) GetPluginName() string { return p.name }

// CanSupport reports whether the volume uses this driver. The kubelet calls it repeatedly for a
// volume that a pod waits for.
func (p *plugin) CanSupport(spec *volume.Spec) bool {
	source, err := sourceOf(spec)
	if err != nil || source.driver != p.name {
		return false
	}
	p.lastUse.Store(time.Now().UnixNano())
	return true
}

func (p *plugin) usedSince(t time.Time) bool { return p.lastUse.Load() > t.UnixNano() }

// CanAttach reports whether the driver supports attach, or supported it when this process attached
// the volume. In the latter case, the volume still has to be detached, and upstream detaches only
// attachable volumes.
func (p *plugin) CanAttach(spec *volume.Spec) (bool, error) {
	driver, err := p.registry.InUse(p.name)
	if err != nil {
		return false, err
	}
	return driver.Capabilities().Attach || p.isAttached(spec), nil
}

// isAttached reports whether this process has attached the volume.
func (p *plugin) isAttached(spec *volume.Spec) bool {
	source, err := sourceOf(spec)
	if err != nil {
		return false
	}
	name, ok := p.nameCache.lookup(p.key(source.volume(spec.Name()), source.inline))
	return ok && p.attachments.attachedByProcess(p.name, name)
}

// attachment returns the attachment of a volume, identified by its storage name, to a node.
func (p *plugin) attachment(volumeName string, node types.NodeName) attachment {
	return attachment{driver: p.name, node: string(node), volume: volumeName}
}

// CanDeviceMount is the same as CanAttach, because a driver without attach supports only mount and
// unmount.
func (p *plugin) CanDeviceMount(spec *volume.Spec) (bool, error) { return p.CanAttach(spec) }

// RequiresRemount returns false: drivers are not called again for a mounted volume.
func (p *plugin) RequiresRemount(*volume.Spec) bool { return false }

// SupportsMountOption returns false: the FlexVolume interface has no mount options.
func (p *plugin) SupportsMountOption() bool { return false }

// SupportsSELinuxContextMount returns false: the FlexVolume interface has no mount options.
func (p *plugin) SupportsSELinuxContextMount(*volume.Spec) (bool, error) { return false, nil }

// VerifyExhaustedResource returns false: the FlexVolume interface has no attach limits.
func (p *plugin) VerifyExhaustedResource(*volume.Spec) bool { return false }

// GetAccessModes returns the modes that Kubernetes has always returned for FlexVolumes.
// PersistentVolumes can specify other modes.
func (p *plugin) GetAccessModes() []corev1.PersistentVolumeAccessMode {
	return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}
}

// NewMounter returns a mounter that mounts a volume for a pod.
func (p *plugin) NewMounter(spec *volume.Spec, pod *corev1.Pod) (volume.Mounter, error) {
	source, err := sourceOf(spec)
	if err != nil {
		return nil, err
	}
	return &mounter{podVolume: p.podVolume(spec.Name(), pod.UID), spec: spec, source: source, pod: pod}, nil
}

// NewUnmounter returns an unmounter for a pod's volume, given only the volume's name.
func (p *plugin) NewUnmounter(volumeName string, pod types.UID) (volume.Unmounter, error) {
	return &unmounter{p.podVolume(volumeName, pod)}, nil
}

// NewAttacher returns an attacher, which calls the driver.
func (p *plugin) NewAttacher() (volume.Attacher, error) { return &attacher{device{p}}, nil }

// NewDetacher returns a detacher, which calls the driver.
func (p *plugin) NewDetacher() (volume.Detacher, error) { return &detacher{device{p}}, nil }

// NewDeviceMounter returns an attacher, which also mounts devices.
func (p *plugin) NewDeviceMounter() (volume.DeviceMounter, error) { return p.NewAttacher() }

// NewDeviceUnmounter returns a detacher, which also unmounts devices.
func (p *plugin) NewDeviceUnmounter() (volume.DeviceUnmounter, error) { return p.NewDetacher() }

// ready returns the driver for new volumes.
func (p *plugin) ready(ctx context.Context) (*flexvolume.Driver, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return p.registry.Ready(ctx, p.name)
}

// inUse returns the driver for volumes that are in use.
func (p *plugin) inUse() (*flexvolume.Driver, error) {
	driver, err := p.registry.InUse(p.name)
	if err != nil {
		return nil, fmt.Errorf("%w; install it again", err)
	}
	return driver, nil
}
