// Package access converts the requested use of a volume (access modes, file system or block device,
// and mount options) to CSI volume capabilities.
package access

import (
	"errors"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
)

// Use describes how pods use a volume.
type Use struct {
	// Block is set if pods use the volume as a raw block device. FSType and MountOptions apply only
	// to file system volumes.
	Block        bool
	FSType       string
	MountOptions []string
	// MultiWriter is set if the driver distinguishes a single writing pod on a node from multiple
	// writing pods (SINGLE_NODE_MULTI_WRITER).
	MultiWriter bool
}

// Capability returns the volume capability for one access mode.
func (u Use) Capability(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	capability := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode}}
	if u.Block {
		capability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		return capability
	}
	capability.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: u.FSType, MountFlags: u.MountOptions}}
	return capability
}

// Mode converts a Kubernetes access mode to a CSI access mode.
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
		return 0, fmt.Errorf("convert access mode %q: unknown access mode", mode)
	}
}

// PerMode returns one capability per access mode, as CreateVolume requires.
func (u Use) PerMode(modes []corev1.PersistentVolumeAccessMode) ([]*csi.VolumeCapability, error) {
	var capabilities []*csi.VolumeCapability
	for _, mode := range modes {
		csiMode, err := u.Mode(mode)
		if err != nil {
			return nil, err
		}
		capabilities = append(capabilities, u.Capability(csiMode))
	}
	return capabilities, nil
}

// Combined returns one capability for all of a volume's access modes, with the most permissive
// mode, as ControllerPublishVolume requires.
func (u Use) Combined(modes []corev1.PersistentVolumeAccessMode) (*csi.VolumeCapability, error) {
	if slices.Contains(modes, corev1.ReadOnlyMany) && slices.Contains(modes, corev1.ReadWriteOnce) && !slices.Contains(modes, corev1.ReadWriteMany) {
		return nil, errors.New("convert access modes: CSI has no mode that is both ReadOnlyMany and ReadWriteOnce; set only one of them in the PersistentVolume")
	}
	for _, mode := range []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadOnlyMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod} {
		if slices.Contains(modes, mode) {
			csiMode, err := u.Mode(mode)
			return u.Capability(csiMode), err
		}
	}
	return nil, fmt.Errorf("convert access modes %q: no supported access mode", modes)
}

// OfVolume returns the Use described by the spec of a CSI PersistentVolume.
func OfVolume(spec *corev1.PersistentVolumeSpec, multiWriter bool) Use {
	use := Use{MultiWriter: multiWriter, MountOptions: spec.MountOptions}
	use.Block = spec.VolumeMode != nil && *spec.VolumeMode == corev1.PersistentVolumeBlock
	if spec.CSI != nil {
		use.FSType = spec.CSI.FSType
	}
	return use
}
