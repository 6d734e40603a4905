package flexvolume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/volume"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	engine "github.com/slipway-platform/slipway/storage/flexvolume"
)

// record is what kubelet must know of a mounted volume after its restart, before it has heard of the API server. It has no secret.
type record struct {
	// Persistent tells a PersistentVolume from an inline volume.
	Persistent bool              `json:"persistent"`
	FSType     string            `json:"fsType,omitempty"`
	ReadOnly   bool              `json:"readOnly,omitempty"`
	Options    map[string]string `json:"options,omitempty"`
	// Name is the volume's name in its storage; empty for a volume that is not attached.
	Name string `json:"name,omitempty"`
}

// record writes the volume's record, before it is mounted. staged is where its device is mounted, or empty.
func (m *mounter) record(staged string) error {
	r := record{
		Persistent: m.spec.PersistentVolume != nil,
		FSType:     m.source.fsType,
		ReadOnly:   m.source.readOnly,
		Options:    m.source.options,
	}
	if staged != "" {
		r.Name = filepath.Base(staged)
	}
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record of volume %q: %w", m.name, err)
	}
	path := m.recordPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("create directory for record of volume: %w", err)
	}
	if err := atomicfile.Write(path, content, 0o600); err != nil {
		return fmt.Errorf("record volume: %w", err)
	}
	return nil
}

// recorded says whether the volume has a record.
func (v podVolume) recorded() bool {
	_, err := os.Stat(v.recordPath())
	return err == nil
}

// forget removes the volume's record.
func (v podVolume) forget() error {
	if err := os.Remove(v.recordPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of volume: %w", err)
	}
	return nil
}

// ConstructVolumeSpec makes the volume that is mounted at a pod's directory anew from its record. Without one, as after the in-tree
// plug-in, it is an inline volume without options, as that one makes it, and its device is where that one has mounted it.
func (p *plugin) ConstructVolumeSpec(volumeName, mountPath string) (volume.ReconstructedVolume, error) {
	// <root>/pods/<uid>/volumes/<vendor~driver>/<volume>
	pod := types.UID(filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(mountPath)))))
	content, err := os.ReadFile(p.podVolume(volumeName, pod).recordPath())
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(p.deviceDir(volumeName)); err == nil {
			p.names.set(p.key(record{}.volume(volumeName)), volumeName)
		}
		return volume.ReconstructedVolume{Spec: record{}.spec(p.name, volumeName)}, nil
	}
	if err != nil {
		return volume.ReconstructedVolume{}, fmt.Errorf("read record of volume: %w", err)
	}
	var r record
	if err := json.Unmarshal(content, &r); err != nil {
		return volume.ReconstructedVolume{}, fmt.Errorf("read record of volume %q of pod %q: %w", volumeName, pod, err)
	}
	if r.Name != "" {
		// The driver need not be asked again, and may not be able to answer yet.
		p.names.set(p.key(r.volume(volumeName)), r.Name)
	}
	return volume.ReconstructedVolume{Spec: r.spec(p.name, volumeName)}, nil
}

// volume is the recorded volume as the engine takes it.
func (r record) volume(name string) engine.Volume {
	return engine.Volume{Name: name, FSType: r.FSType, ReadOnly: r.ReadOnly, Options: r.Options}
}

// spec is the recorded volume as Kubernetes has it.
func (r record) spec(driver, name string) *volume.Spec {
	if !r.Persistent {
		return volume.NewSpecFromVolume(&v1.Volume{Name: name, VolumeSource: v1.VolumeSource{
			FlexVolume: &v1.FlexVolumeSource{Driver: driver, FSType: r.FSType, ReadOnly: r.ReadOnly, Options: r.Options},
		}})
	}
	mode := v1.PersistentVolumeFilesystem
	return volume.NewSpecFromPersistentVolume(&v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeSpec{
			VolumeMode: &mode,
			PersistentVolumeSource: v1.PersistentVolumeSource{
				FlexVolume: &v1.FlexPersistentVolumeSource{Driver: driver, FSType: r.FSType, Options: r.Options},
			},
		},
	}, r.ReadOnly)
}
