package volumeplugin

import (
	"context"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/events"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/util"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// podVolume is a pod's volume.
type podVolume struct {
	volume.MetricsProvider
	plugin *plugin
	name   string // name of the volume's directory
	pod    types.UID
}

func (p *plugin) podVolume(name string, pod types.UID) podVolume {
	v := podVolume{MetricsProvider: &volume.MetricsNil{}, plugin: p, name: name, pod: pod}
	if driver, err := p.registry.InUse(p.name); err == nil && driver.Capabilities().SupportsMetrics {
		v.MetricsProvider = volume.NewMetricsStatFS(v.GetPath())
	}
	return v
}

// GetPath returns the volume's directory. Drivers extract the pod, the driver and the volume from
// this path.
func (v podVolume) GetPath() string {
	return v.plugin.host.GetPodVolumeDir(v.pod, flexvolume.EscapeName(v.plugin.name), v.name)
}

// recordPath returns the path of the volume's record.
func (v podVolume) recordPath() string {
	return filepath.Join(v.plugin.host.GetPodPluginDir(v.pod, flexvolume.EscapeName(v.plugin.name)), v.name+".json")
}

// marker returns the path of the file that marks an interrupted mount.
func (v podVolume) marker() string { return v.recordPath() + ".mounting" }

// mounter mounts a volume for a pod.
type mounter struct {
	podVolume
	spec   *volume.Spec
	source source
	pod    *corev1.Pod
}

// GetAttributes returns the volume's attributes. The kubelet manages the ownership of writable
// volumes.
func (m *mounter) GetAttributes() volume.Attributes {
	attributes := volume.Attributes{ReadOnly: m.source.readOnly, Managed: !m.source.readOnly}
	if driver, err := m.plugin.registry.InUse(m.plugin.name); err == nil {
		attributes.SELinuxRelabel = driver.Capabilities().SELinuxRelabel
	}
	return attributes
}

// SetUp mounts the volume at its path.
func (m *mounter) SetUp(args volume.MounterArgs) error { return m.SetUpAt(m.GetPath(), args) }

// SetUpAt mounts the volume at dir. It changes the group of the files to the pod's group if the
// driver requests this.
func (m *mounter) SetUpAt(dir string, args volume.MounterArgs) error {
	// If a mounted volume has no record, the in-tree plugin mounted it. In this case, continue, so
	// that the volume gets a record.
	if complete, err := flexvolume.MountComplete(dir, m.marker()); complete && m.hasRecord() {
		return nil
	} else if err != nil {
		return transientError(err)
	}
	ctx := context.Background()
	driver, err := m.plugin.ready(ctx)
	if err != nil {
		return transientError(err)
	}
	request, err := m.mountRequest(ctx, args)
	if err != nil {
		return transientError(err)
	}
	var stagedDir string
	if driver.Capabilities().Attach {
		if stagedDir, err = m.plugin.deviceMountPath(m.spec); err != nil {
			return transientError(err)
		}
		attached, err := device{m.plugin}.volume(m.spec)
		if err != nil {
			return transientError(err)
		}
		request.Name = attached.Name
	}
	if err := m.record(stagedDir); err != nil {
		return transientError(err)
	}
	return m.plugin.mountError(driver.Publish(ctx, request, dir, stagedDir, m.marker(), func() error {
		if driver.Capabilities().FSGroup && !m.source.readOnly {
			m.setOwnership(dir, args)
		}
		return nil
	}))
}

// mountRequest returns the input for the driver's mount call.
func (m *mounter) mountRequest(ctx context.Context, args volume.MounterArgs) (flexvolume.MountRequest, error) {
	secrets, err := m.plugin.secrets(ctx, m.source, m.pod.Namespace)
	if err != nil {
		return flexvolume.MountRequest{}, err
	}
	request := flexvolume.MountRequest{
		Volume: m.source.volume(m.spec.Name()),
		Pod: flexvolume.Pod{
			Name: m.pod.Name, Namespace: m.pod.Namespace, UID: string(m.pod.UID), ServiceAccount: m.pod.Spec.ServiceAccountName,
		},
		FSGroup: args.FsGroup,
		Secrets: secrets,
	}
	if m.spec.PersistentVolume == nil {
		request.ID = string(m.pod.UID) + "/" + m.spec.Name()
	}
	return request, nil
}

// setOwnership changes the group of the files to the pod's group. It reports a failure as an event,
// not as an error, because Kubernetes ignores such failures. As a result, volumes that do not
// support ownership changes still work, for example volumes on a server that does not trust root.
func (m *mounter) setOwnership(dir string, args volume.MounterArgs) {
	ownership := args.VolumeOwnershipApplicator
	if ownership == nil {
		ownership = volume.NewVolumeOwnership(m, dir, args.FsGroup, args.FSGroupChangePolicy, util.FSGroupCompleteHook(m.plugin, m.spec))
	}
	if args.Recorder == nil {
		_ = ownership.ChangePermissions()
		return
	}
	if err := ownership.AddProgressNotifier(m.pod, args.Recorder).ChangePermissions(); err != nil {
		args.Recorder.Event(m.pod, corev1.EventTypeWarning, events.FailedMountVolume,
			fmt.Sprintf("set group of the files in volume %q to %d: %v", m.name, *args.FsGroup, err))
	}
}

// unmounter unmounts a pod's volume.
type unmounter struct{ podVolume }

// TearDown unmounts the volume from its path.
func (u *unmounter) TearDown() error { return u.TearDownAt(u.GetPath()) }

// TearDownAt unmounts the volume from dir.
func (u *unmounter) TearDownAt(dir string) error {
	driver, err := u.plugin.inUse()
	if err != nil {
		return err
	}
	if err := driver.Unpublish(context.Background(), dir, u.marker()); err != nil {
		return u.plugin.explain(err)
	}
	return u.removeRecord()
}
