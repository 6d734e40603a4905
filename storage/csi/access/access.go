// Package access says in the words of CSI how a volume is used: access modes, file system or block device, mount options.
package access

import (
	"errors"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
)

// Use is how a volume is used.
type Use struct {
	// Block is a volume that pods get as a device. FSType and MountOptions are for the others.
	Block        bool
	FSType       string
	MountOptions []string
	// MultiWriter is a driver that tells one writing pod on a node from several (SINGLE_NODE_MULTI_WRITER).
	MultiWriter bool
}

// Capability is the use together with one access mode.
func (u Use) Capability(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	capability := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode}}
	if u.Block {
		capability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		return capability
	}
	capability.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: u.FSType, MountFlags: u.MountOptions}}
	return capability
}

// Mode is one access mode of Kubernetes in the words of CSI.
func (u Use) Mode(mode corev1.PersistentVolumeAccessMode) (csi.VolumeCapability_AccessMode_Mode, error) {
	switch mode {
	case corev1.ReadWriteMany:
		return csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, nil
	case corev1.ReadOnlyMany:
		return csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, nil
	case corev1.ReadWriteOnce:
		if u.MultiWriter {
			return csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER, nil
		}
		return csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, nil
	case corev1.ReadWriteOncePod:
		if u.MultiWriter {
			return csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, nil
		}
		return csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, nil
	default:
		return 0, fmt.Errorf("translate access mode %q: it is not known", mode)
	}
}

// Each is one capability for each access mode, as CreateVolume takes them.
func (u Use) Each(modes []corev1.PersistentVolumeAccessMode) ([]*csi.VolumeCapability, error) {
	var all []*csi.VolumeCapability
	for _, mode := range modes {
		translated, err := u.Mode(mode)
		if err != nil {
			return nil, err
		}
		all = append(all, u.Capability(translated))
	}
	return all, nil
}

// One is the one capability for all access modes of a volume, as ControllerPublishVolume takes it: the widest.
func (u Use) One(modes []corev1.PersistentVolumeAccessMode) (*csi.VolumeCapability, error) {
	if slices.Contains(modes, corev1.ReadOnlyMany) && slices.Contains(modes, corev1.ReadWriteOnce) && !slices.Contains(modes, corev1.ReadWriteMany) {
		return nil, errors.New("translate access modes: CSI has none that is both ReadOnlyMany and ReadWriteOnce; give the PersistentVolume one of them")
	}
	for _, mode := range []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadOnlyMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod} {
		if slices.Contains(modes, mode) {
			translated, err := u.Mode(mode)
			return u.Capability(translated), err
		}
	}
	return nil, fmt.Errorf("translate access modes %q: none is known", modes)
}

// OfVolume is the use of a PersistentVolume of a CSI driver.
func OfVolume(spec *corev1.PersistentVolumeSpec, multiWriter bool) Use {
	use := Use{MultiWriter: multiWriter, MountOptions: spec.MountOptions}
	use.Block = spec.VolumeMode != nil && *spec.VolumeMode == corev1.PersistentVolumeBlock
	if spec.CSI != nil {
		use.FSType = spec.CSI.FSType
	}
	return use
}
