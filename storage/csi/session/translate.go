package session

import (
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	csitranslation "k8s.io/csi-translation-lib"
)

// InTree is the in-tree plug-in whose volumes the driver has taken over, such as kubernetes.io/aws-ebs; empty if there is none.
func (s *Session) InTree() string {
	name, err := csitranslation.New().GetInTreeNameFromCSIName(s.Description.Name)
	if err != nil {
		return ""
	}
	return name
}

// Own is a PersistentVolume as one of CSI, or nil if it is none of the driver's. One of the in-tree type that the driver has taken over is translated as the
// stock controllers translate it; its metadata stays, so that it can be patched.
func (s *Session) Own(volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if volume.Spec.CSI != nil {
		if volume.Spec.CSI.Driver != s.Description.Name {
			return nil, nil
		}
		return volume, nil
	}
	translator, inTree := csitranslation.New(), s.InTree()
	if inTree == "" {
		return nil, nil
	}
	if name, err := translator.GetInTreePluginNameFromSpec(volume, nil); err != nil || name != inTree {
		return nil, nil // of another type
	}
	translated, err := translator.TranslateInTreePVToCSI(logr.Discard(), volume)
	if err != nil {
		return nil, fmt.Errorf("translate PersistentVolume %q of %s to CSI: %w", volume.Name, inTree, err)
	}
	return translated, nil
}

// OwnClass is a StorageClass as one of the driver, or nil if it is another's. One of the in-tree plug-in that the driver has taken over is translated.
func (s *Session) OwnClass(class *storagev1.StorageClass) (*storagev1.StorageClass, error) {
	inTree := s.InTree()
	switch {
	case class.Provisioner == s.Description.Name:
		return class, nil
	case inTree == "" || class.Provisioner != inTree:
		return nil, nil
	}
	translated, err := csitranslation.New().TranslateInTreeStorageClassToCSI(logr.Discard(), inTree, class)
	if err != nil {
		return nil, fmt.Errorf("translate StorageClass %q of %s to CSI: %w", class.Name, inTree, err)
	}
	return translated, nil
}

// Untranslated is a new PersistentVolume of CSI as the in-tree type that its StorageClass asked for.
func (s *Session) Untranslated(volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	translated, err := csitranslation.New().TranslateCSIPVToInTree(volume)
	if err != nil {
		return nil, fmt.Errorf("translate PersistentVolume %q to %s: %w", volume.Name, s.InTree(), err)
	}
	return translated, nil
}
