package volumeplugin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/volume"
)

// unavailable is the plugin for all drivers that have no plugin of their own, because they are not
// installed or their init has not succeeded. It supports their volumes only to return the reason.
// Otherwise, the pod's event would be "no volume plugin matched".
//
// The kubelet must not add a volume without a driver to its desired state, because it determines
// only once whether a volume is attachable. Therefore, the plugin is attachable, and GetVolumeName,
// which the kubelet calls first, fails.
type unavailable struct {
	volume.AttachableVolumePlugin // nil, because there is no driver
	prober                        *prober
	host                          volume.VolumeHost
}

func newUnavailable(p *prober) *unavailable {
	driver := &plugin{registry: p.registry, nameCache: p.nameCache, attachments: p.options.Attachments}
	return &unavailable{AttachableVolumePlugin: driver, prober: p}
}

// Init sets the host.
func (u *unavailable) Init(host volume.VolumeHost) error {
	u.host = host
	return u.AttachableVolumePlugin.Init(host)
}

// GetPluginName returns a name that no driver can have.
func (u *unavailable) GetPluginName() string { return pluginDirName }

// CanSupport reports whether the volume uses a driver without a plugin.
func (u *unavailable) CanSupport(spec *volume.Spec) bool {
	source, err := sourceOf(spec)
	return err == nil && !u.prober.hasPlugin(source.driver)
}

// CanAttach and CanDeviceMount return true, so that GetVolumeName is called.
func (u *unavailable) CanAttach(*volume.Spec) (bool, error)      { return true, nil }
func (u *unavailable) CanDeviceMount(*volume.Spec) (bool, error) { return true, nil }

// GetVolumeName returns an error that explains why the driver cannot be used.
func (u *unavailable) GetVolumeName(spec *volume.Spec) (string, error) {
	source, err := sourceOf(spec)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // do not wait for init: the caller holds a lock
	_, err = u.prober.registry.Ready(ctx, source.driver)
	if err == nil {
		err = fmt.Errorf("use FlexVolume driver %q: its init has just succeeded; the volume is retried", source.driver)
	}
	if node := string(u.host.GetNodeName()); node != "" {
		err = fmt.Errorf("on node %q: %w; to see all drivers of the node, run slipway flexvolume list there", node, err)
	}
	return "", err
}

// NewMounter returns an error that explains why the driver cannot be used.
func (u *unavailable) NewMounter(spec *volume.Spec, _ *corev1.Pod) (volume.Mounter, error) {
	_, err := u.GetVolumeName(spec)
	return nil, err
}
