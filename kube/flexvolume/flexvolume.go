// Package flexvolume is the face that the FlexVolume engine shows to Kubernetes: a volume plug-in for each driver, and the dynamic prober
// that hands them out. The embedded kubelet and our instance of the attach-detach controller are given one prober each,
// in place of the in-tree one, so that `flexVolume:` in PersistentVolumes and in pods works as ever.
//
// It differs from the in-tree plug-in in that
//   - the prober never blocks: it hands out what the engine's registry knows already;
//   - the name of a volume is the driver's answer to getvolumename, so that detach gets it, also after a restart of the controller;
//   - one plug-in lives as long as its driver's name; what the driver is capable of is asked anew at each use, so that an update
//     applies to new volumes and the old ones are still undone;
//   - kubelet reconstructs a volume after its restart with its options, from a file beside the pod's volumes.
//
// Metrics has
//
//	slipway_flexvolume_operation_seconds{driver,operation,status}     histogram; status is success ("Not supported" is one) or error
//	slipway_flexvolume_operation_errors_total{driver,operation,kind}  kind is the engine's Kind: timeout, failure, no-answer, ...
//	slipway_flexvolume_operations_in_flight{driver,operation}         calls that run or wait for their turn
//	slipway_flexvolume_scans_total{status}                            scans of the plug-in directory
//	slipway_flexvolume_scan_seconds                                   histogram
package flexvolume

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/volume"

	engine "github.com/slipway-platform/slipway/storage/flexvolume"
)

// pluginDirName is the name below which kubelet keeps what all FlexVolume drivers have mounted for the node.
const pluginDirName = "kubernetes.io/flexvolume"

// readyWait is how long an operation waits for a driver that is being initialized. Kubernetes tries again after it.
const readyWait = 10 * time.Second

// plugin is the volume plug-in of one driver.
type plugin struct {
	name     string
	registry *engine.Registry
	names    *names

	attachments *Attachments
	host        volume.VolumeHost
	asked       atomic.Int64 // when somebody last looked for the plug-in of one of its volumes, in nanoseconds
}

var (
	_ volume.AttachableVolumePlugin     = (*plugin)(nil)
	_ volume.PersistentVolumePlugin     = (*plugin)(nil)
	_ volume.NodeExpandableVolumePlugin = (*plugin)(nil)
	_ volume.ExpandableVolumePlugin     = (*plugin)(nil)
)

// Init takes the host. It is called before anything else.
func (p *plugin) Init(host volume.VolumeHost) error {
	p.host = host
	return nil
}

// GetPluginName is the driver's name, which is also the first part of its volumes' unique names.
func (p *plugin) GetPluginName() string { return p.name }

// CanSupport says whether the volume is of this driver. Kubelet asks again and again for a volume that a pod waits for.
func (p *plugin) CanSupport(spec *volume.Spec) bool {
	source, err := sourceOf(spec)
	if err != nil || source.driver != p.name {
		return false
	}
	p.asked.Store(time.Now().UnixNano())
	return true
}

func (p *plugin) askedSince(t time.Time) bool { return p.asked.Load() > t.UnixNano() }

// CanAttach says whether the driver has attach and detach now, or had them when this process attached the volume: that one is still to be
// detached, and only what can be attached is.
func (p *plugin) CanAttach(spec *volume.Spec) (bool, error) {
	driver, err := p.registry.InUse(p.name)
	if err != nil {
		return false, err
	}
	return driver.Capabilities().Attach || p.isAttached(spec), nil
}

// isAttached says whether this process has attached the volume.
func (p *plugin) isAttached(spec *volume.Spec) bool {
	source, err := sourceOf(spec)
	if err != nil {
		return false
	}
	name, known := p.names.known(p.key(source.volume(spec.Name())))
	return known && p.attachments.attachedHere(p.name, name)
}

// attachment is a volume, by its name in its storage, at a node.
func (p *plugin) attachment(volumeName string, node types.NodeName) attachment {
	return attachment{driver: p.name, node: string(node), volume: volumeName}
}

// CanDeviceMount goes with CanAttach: a driver without attach has only mount and unmount.
func (p *plugin) CanDeviceMount(spec *volume.Spec) (bool, error) { return p.CanAttach(spec) }

// RequiresRemount is false: drivers are not called for a volume that is mounted.
func (p *plugin) RequiresRemount(*volume.Spec) bool { return false }

// SupportsMountOption is false: the interface has no place for mount options.
func (p *plugin) SupportsMountOption() bool { return false }

// SupportsSELinuxContextMount is false for the same reason.
func (p *plugin) SupportsSELinuxContextMount(*volume.Spec) (bool, error) { return false, nil }

// VerifyExhaustedResource is false: nothing is known of limits.
func (p *plugin) VerifyExhaustedResource(*volume.Spec) bool { return false }

// GetAccessModes are those that Kubernetes has always given to FlexVolumes; PersistentVolumes may have others.
func (p *plugin) GetAccessModes() []v1.PersistentVolumeAccessMode {
	return []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce, v1.ReadOnlyMany}
}

// NewMounter makes what mounts a volume for a pod.
func (p *plugin) NewMounter(spec *volume.Spec, pod *v1.Pod) (volume.Mounter, error) {
	source, err := sourceOf(spec)
	if err != nil {
		return nil, err
	}
	return &mounter{podVolume: p.podVolume(spec.Name(), pod.UID), spec: spec, source: source, pod: pod}, nil
}

// NewUnmounter makes what unmounts a volume of a pod, of which only the name is known.
func (p *plugin) NewUnmounter(volumeName string, pod types.UID) (volume.Unmounter, error) {
	return &unmounter{p.podVolume(volumeName, pod)}, nil
}

// NewAttacher makes what attaches volumes to nodes.
func (p *plugin) NewAttacher() (volume.Attacher, error) { return &attacher{device{p}}, nil }

// NewDetacher makes what detaches them.
func (p *plugin) NewDetacher() (volume.Detacher, error) { return &detacher{device{p}}, nil }

// NewDeviceMounter makes what mounts attached devices for all pods of the node.
func (p *plugin) NewDeviceMounter() (volume.DeviceMounter, error) { return p.NewAttacher() }

// NewDeviceUnmounter makes what unmounts them.
func (p *plugin) NewDeviceUnmounter() (volume.DeviceUnmounter, error) { return p.NewDetacher() }

// ready is the driver for new volumes.
func (p *plugin) ready(ctx context.Context) (*engine.Driver, error) {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	return p.registry.Ready(ctx, p.name)
}

// inUse is the driver for volumes that are in use, or the error of one that was never seen.
func (p *plugin) inUse() (*engine.Driver, error) {
	driver, err := p.registry.InUse(p.name)
	if err != nil {
		return nil, fmt.Errorf("%w; install it again", err)
	}
	return driver, nil
}
