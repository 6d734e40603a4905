package provision

import (
	"errors"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/slipway-platform/slipway/storage/csi/attach"
	"github.com/slipway-platform/slipway/storage/csi/parameters"
	"github.com/slipway-platform/slipway/storage/csi/topology"
)

// The PersistentVolume annotations that reference the secret for deleting the volume. The secret is
// recorded because the StorageClass might no longer exist when the volume is deleted.
const (
	deletionSecretName      = "volume.kubernetes.io/provisioner-deletion-secret-name"
	deletionSecretNamespace = "volume.kubernetes.io/provisioner-deletion-secret-namespace"
)

// persistentVolume returns the PersistentVolume for a volume, bound to the claim.
func (p *provisioner) persistentVolume(plan *plan, volume *csi.Volume) (*corev1.PersistentVolume, error) {
	source, err := p.source(plan, volume)
	if err != nil {
		return nil, err
	}
	claim := plan.claim
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: plan.request.GetName(), Annotations: map[string]string{provisionedByAnnotation: p.name}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: capacity(plan, volume)},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              plan.class.Name,
			MountOptions:                  plan.class.MountOptions,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: source},
			ClaimRef: &corev1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
		},
	}
	if plan.class.ReclaimPolicy != nil {
		pv.Spec.PersistentVolumeReclaimPolicy = *plan.class.ReclaimPolicy
	}
	if plan.attributes != "" {
		pv.Spec.VolumeAttributesClassName = &plan.attributes
	}
	p.setFinalizers(pv)
	if secret := plan.deletionSecret; secret != nil {
		pv.Annotations[deletionSecretName], pv.Annotations[deletionSecretNamespace] = secret.Name, secret.Namespace
	}
	if p.topology {
		pv.Spec.NodeAffinity = topology.NodeAffinity(volume.GetAccessibleTopology())
	}
	if p.Node != "" && pv.Spec.NodeAffinity == nil {
		return nil, errors.New("check response to CreateVolume: the driver serves one node and did not report that the volume is on it")
	}
	if plan.inTree {
		pv.Annotations[provisionedByAnnotation], pv.Annotations[storagehelpers.AnnMigratedTo] = p.InTreePlugin(), p.name
		return p.ToInTree(pv)
	}
	return pv, nil
}

// setFinalizers adds the finalizers of the provisioner and the attacher to a new PersistentVolume.
// Adding the attacher's finalizer now saves a later request.
func (p *provisioner) setFinalizers(pv *corev1.PersistentVolume) {
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		pv.Finalizers = append(pv.Finalizers, volumeFinalizer)
	}
	if p.canPublish {
		pv.Finalizers = append(pv.Finalizers, attach.Finalizer(p.name))
	}
}

// capacity returns the size in the driver's response, or the requested size if the response does
// not contain a size.
func capacity(plan *plan, volume *csi.Volume) resource.Quantity {
	size := volume.GetCapacityBytes()
	if size == 0 {
		size = plan.request.GetCapacityRange().GetRequiredBytes()
	}
	return *resource.NewQuantity(size, resource.BinarySI)
}

// source returns the volume source with the secrets for later operations.
func (p *provisioner) source(plan *plan, volume *csi.Volume) (*corev1.CSIPersistentVolumeSource, error) {
	source := &corev1.CSIPersistentVolumeSource{
		Driver: p.name, VolumeHandle: volume.GetVolumeId(), VolumeAttributes: volume.GetVolumeContext(), FSType: plan.use.FSType,
	}
	for operation, target := range map[parameters.Operation]**corev1.SecretReference{
		parameters.ControllerPublish: &source.ControllerPublishSecretRef,
		parameters.NodeStage:         &source.NodeStageSecretRef,
		parameters.NodePublish:       &source.NodePublishSecretRef,
		parameters.ControllerExpand:  &source.ControllerExpandSecretRef,
		parameters.NodeExpand:        &source.NodeExpandSecretRef,
	} {
		reference, err := plan.secret(operation)
		if err != nil {
			return nil, err
		}
		*target = reference
	}
	return source, nil
}
