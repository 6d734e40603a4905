package session

import (
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	csitranslation "k8s.io/csi-translation-lib"
)

// InTreePlugin returns the in-tree plugin that the driver replaces, such as kubernetes.io/aws-ebs,
// or "".
func (s *Session) InTreePlugin() string {
	name, err := csitranslation.New().GetInTreeNameFromCSIName(s.Description.Name)
	if err != nil {
		return ""
	}
	return name
}

// OwnVolume returns a PersistentVolume as a CSI volume, or nil if the PersistentVolume does not
// belong to this driver. It translates a volume of the in-tree plugin that the driver replaces, as
// the upstream controllers do. It leaves the metadata unchanged, so that the PersistentVolume can
// be patched.
func (s *Session) OwnVolume(volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if volume.Spec.CSI != nil {
		if volume.Spec.CSI.Driver != s.Description.Name {
			return nil, nil
		}
		return volume, nil
	}
	translator, inTree := csitranslation.New(), s.InTreePlugin()
	if inTree == "" {
		return nil, nil
	}
	if name, err := translator.GetInTreePluginNameFromSpec(volume, nil); err != nil || name != inTree {
		return nil, nil // the volume has another type
	}
	translated, err := translator.TranslateInTreePVToCSI(logr.Discard(), volume)
	if err != nil {
		return nil, fmt.Errorf("translate PersistentVolume %q of %s to CSI: %w", volume.Name, inTree, err)
	}
	return translated, nil
}

// OwnClass returns a StorageClass of this driver, or nil if the class belongs to another
// provisioner. It translates a class of the in-tree plugin that the driver replaces.
func (s *Session) OwnClass(class *storagev1.StorageClass) (*storagev1.StorageClass, error) {
	inTree := s.InTreePlugin()
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

// ToInTree translates a new CSI PersistentVolume to the in-tree volume type that its StorageClass
// requests.
func (s *Session) ToInTree(volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	translated, err := csitranslation.New().TranslateCSIPVToInTree(volume)
	if err != nil {
		return nil, fmt.Errorf("translate PersistentVolume %q to %s: %w", volume.Name, s.InTreePlugin(), err)
	}
	return translated, nil
}
