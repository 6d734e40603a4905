package session

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodeaffinity "k8s.io/component-helpers/storage/volume"
)

// Claimed is the PersistentVolume that a claim is bound to, as far as the caches know, if it is one that the session serves: of its driver and, for a
// driver that serves one node, on that node. Otherwise it is nil. It is one of CSI, see Own.
func (s *Session) Claimed(claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
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
	if volume, err = s.Own(volume); err != nil || volume == nil {
		return nil, err
	}
	here, err := s.Holds(volume)
	if err != nil || !here {
		return nil, err
	}
	return volume, nil
}

// Holds tells whether a volume of the driver can be reached from the node that the driver serves, if it serves one. It cannot when the volume does not
// say where it is: every node would feel in charge.
func (s *Session) Holds(volume *corev1.PersistentVolume) (bool, error) {
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
	return nodeaffinity.CheckNodeAffinity(volume, node.Labels) == nil, nil
}
