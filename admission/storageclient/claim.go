package storageclient

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// provisionerAnnotations lists the claim annotations whose value is the driver that the volume
// binder selected. The second annotation is deprecated.
var provisionerAnnotations = [...]string{"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"}

// checkClaim accepts updates to claims that the driver owns, and updates to their status. It checks
// the metadata in both cases, because a status update can also change metadata.
func (p *plugin) checkClaim(ctx context.Context, old, object runtime.Object) error {
	before, existed := old.(*corev1.PersistentVolumeClaim)
	after, exists := object.(*corev1.PersistentVolumeClaim)
	switch {
	case !existed || !exists:
		return errors.New("the client of local storage can only update claims")
	case !equality.Semantic.DeepEqual(before.Spec, after.Spec):
		return errors.New("spec: the client of local storage must not change the spec of claims")
	}
	if err := checkMetadata(before, after, p.ClaimFinalizers, p.ClaimAnnotations); err != nil {
		return err
	}
	owned, err := p.ownsClaim(ctx, before)
	if err == nil && !owned {
		err = fmt.Errorf("neither the StorageClass nor the volume of claim %q belongs to the driver of local storage, %q", before.Name, p.Driver)
	}
	return err
}

// ownsClaim reports whether the driver owns a claim: the claim's provisioner annotation, class or
// volume identifies the driver. The annotation is sufficient, because the class might no longer
// exist. The driver can also own a claim that is bound to another driver's volume. If it was
// provisioning a volume for the claim at that time, it must delete its own volume.
func (p *plugin) ownsClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	for _, name := range provisionerAnnotations {
		if claim.Annotations[name] == p.Driver {
			return true, nil
		}
	}
	if name := storagehelpers.GetPersistentVolumeClaimClass(claim); name != "" {
		class, err := p.kube.StorageV1().StorageClasses().Get(ctx, name, metav1.GetOptions{})
		if err == nil && class.Provisioner == p.Driver {
			return true, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("read StorageClass %q: %w", name, err)
		}
	}
	if claim.Spec.VolumeName == "" {
		return false, nil
	}
	driver, err := p.volumeDriver(ctx, claim.Spec.VolumeName)
	if apierrors.IsNotFound(err) {
		// Every driver removes its finalizers from a claim whose volume no longer exists, so this
		// driver is allowed to change such a claim while the claim is being deleted.
		return claim.DeletionTimestamp != nil, nil
	}
	return driver == p.Driver, err
}

// volumeDriver returns the CSI driver of a PersistentVolume, or "" if the volume is not a CSI
// volume.
func (p *plugin) volumeDriver(ctx context.Context, name string) (string, error) {
	pv, err := p.kube.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read PersistentVolume %q: %w", name, err)
	}
	if pv.Spec.CSI == nil {
		return "", nil
	}
	return pv.Spec.CSI.Driver, nil
}
