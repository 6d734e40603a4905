package volumeplugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/volume"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// record contains the data from which the kubelet reconstructs a mounted volume after a restart,
// without the API server. It contains no secrets.
type record struct {
	// Persistent distinguishes a PersistentVolume from an inline volume.
	Persistent bool              `json:"persistent"`
	FSType     string            `json:"fsType,omitempty"`
	ReadOnly   bool              `json:"readOnly,omitempty"`
	Options    map[string]string `json:"options,omitempty"`
	// Name is the volume's storage name, or "" for a volume that is not attached.
	Name string `json:"name,omitempty"`
}

// record writes the volume's record before the volume is mounted. stagedDir is the path where the
// volume's device is mounted, or "".
func (m *mounter) record(stagedDir string) error {
	r := record{
		Persistent: m.spec.PersistentVolume != nil,
		FSType:     m.source.fsType,
		ReadOnly:   m.source.readOnly,
		Options:    m.source.options,
	}
	if stagedDir != "" {
		r.Name = filepath.Base(stagedDir)
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

// hasRecord reports whether the volume has a record.
func (v podVolume) hasRecord() bool {
	_, err := os.Stat(v.recordPath())
	return err == nil
}

// removeRecord removes the volume's record.
func (v podVolume) removeRecord() error {
	if err := os.Remove(v.recordPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove volume record: %w", err)
	}
	return nil
}

// ConstructVolumeSpec reconstructs the volume that is mounted in a pod's directory from its record.
// If there is no record, the in-tree plugin mounted the volume. In that case, ConstructVolumeSpec
// behaves like the in-tree plugin: it returns an inline volume without options, with the device at
// the in-tree plugin's path.
func (p *plugin) ConstructVolumeSpec(volumeName, mountPath string) (volume.ReconstructedVolume, error) {
	// mountPath is <root>/pods/<uid>/volumes/<vendor~driver>/<volume>.
	pod := types.UID(filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(mountPath)))))
	content, err := os.ReadFile(p.podVolume(volumeName, pod).recordPath())
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(p.deviceDir(volumeName)); err == nil {
			p.nameCache.set(p.key(record{}.volume(volumeName), true), volumeName, true)
		}
		return volume.ReconstructedVolume{Spec: record{}.spec(p.name, volumeName)}, nil
	}
	if err != nil {
		return volume.ReconstructedVolume{}, fmt.Errorf("read volume record: %w", err)
	}
	var r record
	if err := json.Unmarshal(content, &r); err != nil {
		return volume.ReconstructedVolume{}, fmt.Errorf("parse record of volume %q of pod %q: %w", volumeName, pod, err)
	}
	if r.Name != "" {
		// Use the recorded name, because the driver might not be ready yet.
		p.nameCache.set(p.key(r.volume(volumeName), !r.Persistent), r.Name, !r.Persistent && r.Name == volumeName)
	}
	return volume.ReconstructedVolume{Spec: r.spec(p.name, volumeName)}, nil
}

// volume converts the record to the engine's Volume type.
func (r record) volume(name string) flexvolume.Volume {
	return flexvolume.Volume{Name: name, FSType: r.FSType, ReadOnly: r.ReadOnly, Options: r.Options}
}

// spec converts the record to a Kubernetes volume spec.
func (r record) spec(driver, name string) *volume.Spec {
	if !r.Persistent {
		return volume.NewSpecFromVolume(&corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			FlexVolume: &corev1.FlexVolumeSource{Driver: driver, FSType: r.FSType, ReadOnly: r.ReadOnly, Options: r.Options},
		}})
	}
	mode := corev1.PersistentVolumeFilesystem
	return volume.NewSpecFromPersistentVolume(&corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			VolumeMode: &mode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: driver, FSType: r.FSType, Options: r.Options},
			},
		},
	}, r.ReadOnly)
}
