package csi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/fake"
)

// binder simulates the volume binder: it requests provisioning for claims, binds claims, and
// releases volumes whose claim no longer exists.
type binder struct {
	client  kubernetes.Interface
	claims  coreinformers.PersistentVolumeClaimInformer
	volumes coreinformers.PersistentVolumeInformer
}

type patch = map[string]any

// request sets the provisioner annotation on a claim.
func (b *binder) request(ctx context.Context, key controller.Key) error {
	claim, err := b.claims.Lister().PersistentVolumeClaims(key.Namespace).Get(key.Name)
	if err != nil || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return nil
	}
	const annotation = "volume.kubernetes.io/storage-provisioner"
	if claim.Annotations[annotation] != "" {
		return nil
	}
	return b.patchClaim(ctx, claim, patch{"metadata": patch{"uid": claim.UID, "annotations": patch{annotation: fake.Name}}})
}

// bind binds a PersistentVolume to its claim, or releases it.
func (b *binder) bind(ctx context.Context, key controller.Key) error {
	pv, err := b.volumes.Lister().Get(key.Name)
	if err != nil || pv.Spec.ClaimRef == nil {
		return nil
	}
	ref := pv.Spec.ClaimRef
	claim, err := b.client.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && claim.UID != ref.UID:
		return b.phase(ctx, pv, corev1.VolumeReleased)
	case err != nil:
		return fmt.Errorf("read claim: %w", err)
	case claim.Status.Phase == corev1.ClaimBound:
		return b.phase(ctx, pv, corev1.VolumeBound)
	}
	if err := b.patchClaim(ctx, claim, patch{"metadata": patch{"uid": claim.UID}, "spec": patch{"volumeName": pv.Name}}); err != nil {
		return err
	}
	if err := b.patchClaim(ctx, claim, patch{"metadata": patch{"uid": claim.UID}, "status": patch{"phase": corev1.ClaimBound}}, "status"); err != nil {
		return err
	}
	return b.phase(ctx, pv, corev1.VolumeBound)
}

func (b *binder) phase(ctx context.Context, pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) error {
	if pv.Status.Phase == phase {
		return nil
	}
	change := encode(patch{"metadata": patch{"uid": pv.UID}, "status": patch{"phase": phase}})
	_, err := b.client.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.MergePatchType, change, metav1.PatchOptions{}, "status")
	return err
}

func (b *binder) patchClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, change patch, subresources ...string) error {
	_, err := b.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, encode(change), metav1.PatchOptions{}, subresources...)
	return err
}
