package provision

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"
)

// Annotations of claims, each with the older one that it replaced. The volume binder writes them.
const (
	provisionerAnnotation    = "volume.kubernetes.io/storage-provisioner"
	oldProvisionerAnnotation = "volume.beta.kubernetes.io/storage-provisioner"
	nodeAnnotation           = "volume.kubernetes.io/selected-node"
	oldNodeAnnotation        = "volume.alpha.kubernetes.io/selected-node"
)

// provisionerOf is the provisioner that the volume binder has asked to make a volume: for an in-tree type the driver that serves it now.
func provisionerOf(claim *corev1.PersistentVolumeClaim) string {
	if driver := claim.Annotations[volume.AnnMigratedTo]; driver != "" {
		return driver
	}
	return either(claim.Annotations, provisionerAnnotation, oldProvisionerAnnotation)
}

// selectedNode is the node that the scheduler has chosen, empty before or for immediate binding.
func selectedNode(claim *corev1.PersistentVolumeClaim) string {
	return either(claim.Annotations, nodeAnnotation, oldNodeAnnotation)
}

func either(annotations map[string]string, key, older string) string {
	if value, ok := annotations[key]; ok {
		return value
	}
	return annotations[older]
}

// isPending tells whether there may be a volume that no PersistentVolume answers for yet.
func isPending(claim *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(claim.Finalizers, pending)
}

// wanted tells whether the claim waits for this driver to make a volume, and by which StorageClass.
func (p *provisioner) wanted(claim *corev1.PersistentVolumeClaim) (*storagev1.StorageClass, bool, error) {
	if claim.DeletionTimestamp != nil || claim.Spec.VolumeName != "" || provisionerOf(claim) != p.name || !knownSource(claim) {
		return nil, false, nil
	}
	name := volume.GetPersistentVolumeClaimClass(claim)
	class, err := p.classes.Get(name)
	if err != nil {
		return nil, false, fmt.Errorf("read StorageClass %q of claim \"%s/%s\": %w", name, claim.Namespace, claim.Name, err)
	}
	own, err := p.OwnClass(class)
	if err != nil || own == nil || delayed(class) && selectedNode(claim) == "" {
		return nil, false, err
	}
	return class, true, nil
}

// delayed tells whether volumes of the class are made only when a pod that uses them is scheduled.
func delayed(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}
