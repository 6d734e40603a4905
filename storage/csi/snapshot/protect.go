package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// protect adds the finalizer to a claim while a snapshot of its volume is being created.
func (r *snapshotter) protect(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.DeletionTimestamp != nil {
		return userErrorf("PersistentVolumeClaim %q is being deleted", claim.Name)
	}
	if slices.Contains(claim.Finalizers, claimFinalizer) {
		return nil
	}
	return r.setFinalizers(ctx, claim, append(slices.Clone(claim.Finalizers), claimFinalizer))
}

// unprotect removes the finalizer from a snapshot's claim if no other snapshot of the claim is
// being created.
func (r *snapshotter) unprotect(ctx context.Context, s *snapshotv1.VolumeSnapshot) error {
	if s.Spec.Source.PersistentVolumeClaimName == nil {
		return nil
	}
	claim, err := r.claims.PersistentVolumeClaims(s.Namespace).Get(*s.Spec.Source.PersistentVolumeClaimName)
	if apierrors.IsNotFound(err) || err == nil && !slices.Contains(claim.Finalizers, claimFinalizer) {
		return nil
	}
	if err != nil {
		return err
	}
	if volume, err := r.volumes.Get(claim.Spec.VolumeName); err == nil && (volume.Spec.CSI == nil || volume.Spec.CSI.Driver != r.driver) {
		return nil // a later claim has the same name, or the class belongs to another driver
	}
	for _, other := range r.snapshotsOf(s.Namespace, claim.Name) {
		if other.UID != s.UID && !isReady(other) && slices.Contains(other.Finalizers, boundFinalizer) {
			return nil // the other snapshot removes the finalizer
		}
	}
	finalizers := slices.DeleteFunc(slices.Clone(claim.Finalizers), func(f string) bool { return f == claimFinalizer })
	return r.setFinalizers(ctx, claim, finalizers)
}

// setFinalizers sets the claim's finalizers. It fails with a conflict if the claim has changed.
func (r *snapshotter) setFinalizers(ctx context.Context, claim *corev1.PersistentVolumeClaim, finalizers []string) error {
	if finalizers == nil {
		finalizers = []string{}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": claim.UID, "resourceVersion": claim.ResourceVersion, "finalizers": finalizers,
	}})
	if err != nil {
		return err
	}
	_, err = r.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("set finalizers of PersistentVolumeClaim \"%s/%s\": %w", claim.Namespace, claim.Name, err)
	}
	return nil
}
