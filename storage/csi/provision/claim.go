package provision

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"
)

// Annotations that the volume binder writes to claims, each with its deprecated predecessor.
const (
	provisionerAnnotation    = "volume.kubernetes.io/storage-provisioner"
	oldProvisionerAnnotation = "volume.beta.kubernetes.io/storage-provisioner"
	nodeAnnotation           = "volume.kubernetes.io/selected-node"
	oldNodeAnnotation        = "volume.alpha.kubernetes.io/selected-node"
)

// provisionerOf returns the provisioner that the volume binder selected. For an in-tree plugin, it
// returns the CSI driver that replaces the plugin.
func provisionerOf(claim *corev1.PersistentVolumeClaim) string {
	if driver := claim.Annotations[volume.AnnMigratedTo]; driver != "" {
		return driver
	}
	return annotation(claim.Annotations, provisionerAnnotation, oldProvisionerAnnotation)
}

// selectedNode returns the node that the scheduler selected, or "" if the scheduler has not
// selected a node or binding is immediate.
func selectedNode(claim *corev1.PersistentVolumeClaim) string {
	return annotation(claim.Annotations, nodeAnnotation, oldNodeAnnotation)
}

func annotation(annotations map[string]string, key, older string) string {
	if value, ok := annotations[key]; ok {
		return value
	}
	return annotations[older]
}

// isPending reports whether the claim might have a volume without a PersistentVolume.
func isPending(claim *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(claim.Finalizers, pendingFinalizer)
}

// shouldProvision reports whether the claim is waiting for this driver to create a volume, and
// returns the claim's StorageClass.
func (p *provisioner) shouldProvision(claim *corev1.PersistentVolumeClaim) (*storagev1.StorageClass, bool, error) {
	if claim.DeletionTimestamp != nil || claim.Spec.VolumeName != "" || provisionerOf(claim) != p.name || !supportedSource(claim) {
		return nil, false, nil
	}
	name := volume.GetPersistentVolumeClaimClass(claim)
	class, err := p.classes.Get(name)
	if err != nil {
		return nil, false, fmt.Errorf("read StorageClass %q of claim \"%s/%s\": %w", name, claim.Namespace, claim.Name, err)
	}
	translated, err := p.OwnClass(class)
	if err != nil || translated == nil || hasDelayedBinding(class) && selectedNode(claim) == "" {
		return nil, false, err
	}
	return class, true, nil
}

// hasDelayedBinding reports whether the class's volumes are created only when a pod that uses them
// is scheduled.
func hasDelayedBinding(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}
