package flexvolume

import (
	"context"
	"fmt"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/events"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/util"

	engine "github.com/slipway-platform/slipway/storage/flexvolume"
)

// podVolume is one volume of one pod.
type podVolume struct {
	volume.MetricsProvider
	plugin *plugin
	name   string // as the directory of the volume is called
	pod    types.UID
}

func (p *plugin) podVolume(name string, pod types.UID) podVolume {
	v := podVolume{MetricsProvider: &volume.MetricsNil{}, plugin: p, name: name, pod: pod}
	if driver, err := p.registry.InUse(p.name); err == nil && driver.Capabilities().SupportsMetrics {
		v.MetricsProvider = volume.NewMetricsStatFS(v.GetPath())
	}
	return v
}

// GetPath is the volume's directory, from which drivers read the pod, the driver and the volume.
func (v podVolume) GetPath() string {
	return v.plugin.host.GetPodVolumeDir(v.pod, engine.EscapeName(v.plugin.name), v.name)
}

// recordPath is the file that keeps what is needed to reconstruct the volume.
func (v podVolume) recordPath() string {
	return filepath.Join(v.plugin.host.GetPodPluginDir(v.pod, engine.EscapeName(v.plugin.name)), v.name+".json")
}

// marker is the file that shows an interrupted mount.
func (v podVolume) marker() string { return v.recordPath() + ".mounting" }

// mounter mounts a volume for a pod.
type mounter struct {
	podVolume
	spec   *volume.Spec
	source source
	pod    *v1.Pod
}

// GetAttributes say how the volume is used; kubelet manages the ownership of those that can be written.
func (m *mounter) GetAttributes() volume.Attributes {
	attributes := volume.Attributes{ReadOnly: m.source.readOnly, Managed: !m.source.readOnly}
	if driver, err := m.plugin.registry.InUse(m.plugin.name); err == nil {
		attributes.SELinuxRelabel = driver.Capabilities().SELinuxRelabel
	}
	return attributes
}

// SetUp mounts the volume at its path.
func (m *mounter) SetUp(args volume.MounterArgs) error { return m.SetUpAt(m.GetPath(), args) }

// SetUpAt mounts the volume at dir, and gives its files to the pod's group if the driver wants that.
func (m *mounter) SetUpAt(dir string, args volume.MounterArgs) error {
	// What the in-tree plug-in has mounted has no record yet.
	if done, err := engine.MountComplete(dir, m.marker()); done && m.recorded() {
		return nil
	} else if err != nil {
		return notCalled(err)
	}
	ctx := context.Background()
	driver, err := m.plugin.ready(ctx)
	if err != nil {
		return notCalled(err)
	}
	mounting, err := m.mounting(ctx, args)
	if err != nil {
		return notCalled(err)
	}
	var staged string
	if driver.Capabilities().Attach {
		if staged, err = m.plugin.deviceMountPath(m.spec); err != nil {
			return notCalled(err)
		}
	}
	if err := m.record(staged); err != nil {
		return notCalled(err)
	}
	return outcome(driver.Publish(ctx, mounting, dir, staged, m.marker(), func() error {
		if driver.Capabilities().FSGroup && !m.source.readOnly {
			m.own(dir, args)
		}
		return nil
	}))
}

// mounting is what the driver is told on mount.
func (m *mounter) mounting(ctx context.Context, args volume.MounterArgs) (engine.MountRequest, error) {
	secrets, err := m.plugin.secrets(ctx, m.source, m.pod.Namespace)
	if err != nil {
		return engine.MountRequest{}, err
	}
	mounting := engine.MountRequest{
		Volume: m.source.volume(m.spec.Name()),
		Pod: engine.Pod{
			Name: m.pod.Name, Namespace: m.pod.Namespace, UID: string(m.pod.UID), ServiceAccount: m.pod.Spec.ServiceAccountName,
		},
		FSGroup: args.FsGroup,
		Secrets: secrets,
	}
	if m.spec.PersistentVolume == nil {
		mounting.ID = string(m.pod.UID) + "/" + m.spec.Name()
	}
	return mounting, nil
}

// own gives the files to the pod's group. A failure is an event and no error, because Kubernetes ignores it and volumes that
// refuse, such as those of a server that does not trust root, work all the same.
func (m *mounter) own(dir string, args volume.MounterArgs) {
	ownership := args.VolumeOwnershipApplicator
	if ownership == nil {
		ownership = volume.NewVolumeOwnership(m, dir, args.FsGroup, args.FSGroupChangePolicy, util.FSGroupCompleteHook(m.plugin, m.spec))
	}
	if args.Recorder == nil {
		_ = ownership.ChangePermissions()
		return
	}
	if err := ownership.AddProgressNotifier(m.pod, args.Recorder).ChangePermissions(); err != nil {
		args.Recorder.Event(m.pod, v1.EventTypeWarning, events.FailedMountVolume,
			fmt.Sprintf("give files of volume %q to group %d: %v", m.name, *args.FsGroup, err))
	}
}

// unmounter unmounts a volume of a pod.
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
		return err
	}
	return u.forget()
}
