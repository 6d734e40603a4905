package session

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// BoundVolume returns the PersistentVolume to which a claim is bound, as a CSI volume (see
// OwnVolume). It returns nil unless the session serves the volume. The volume must belong to the
// session's driver. If the driver serves a single node, the volume must be accessible from this
// node.
func (s *Session) BoundVolume(claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return nil, nil
	}
	volume, err := s.Informers.Core().V1().PersistentVolumes().Lister().Get(claim.Spec.VolumeName)
	if err != nil {
		return nil, fmt.Errorf("read PersistentVolume %q: %w", claim.Spec.VolumeName, err)
	}
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID != claim.UID {
		return nil, nil
	}
	if volume, err = s.OwnVolume(volume); err != nil || volume == nil {
		return nil, err
	}
	accessible, err := s.Accessible(volume)
	if err != nil || !accessible {
		return nil, err
	}
	return volume, nil
}

// Accessible reports whether the node that the driver serves can access a volume. It always returns
// true for a driver that serves all nodes. A volume without node affinity is not accessible from a
// single node, because otherwise every node would serve it.
func (s *Session) Accessible(volume *corev1.PersistentVolume) (bool, error) {
	if s.Node == "" {
		return true, nil
	}
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return false, nil
	}
	node, err := s.Informers.Core().V1().Nodes().Lister().Get(s.Node)
	if err != nil {
		return false, fmt.Errorf("read Node %q: %w", s.Node, err)
	}
	return storagehelpers.CheckNodeAffinity(volume, node.Labels) == nil, nil
}
