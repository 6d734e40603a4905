// Package resize expands a CSI driver's volumes according to their claims. It allows users to
// reduce a request that the driver cannot fulfill (KEP-1790, recovery from failed volume
// expansion). It expands the volume in the storage system and updates the PersistentVolume. If the
// claim's status is NodeResizePending, the kubelet performs the remaining steps on the node.
//
// The package does not determine whether a volume is in use, because this would require a cache of
// pods. A driver that expands only detached volumes returns an error, and the deletion of a
// VolumeAttachment triggers the next attempt.
package resize

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

// Options configures the expansion of volumes.
type Options struct {
	// Workers is the maximum number of volumes that are expanded concurrently. The default is 10.
	Workers int
	// Retry is the backoff after the first error. The backoff doubles after each further error, up
	// to RetryMax. The defaults are 1 second and 5 minutes.
	Retry, RetryMax time.Duration
}

// resizer expands one driver's volumes.
type resizer struct {
	*session.Session
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
}

// Feature returns a driver's controllers.
func Feature(options Options) session.Feature {
	return func(s *session.Session) ([]controller.Controller, error) {
		core := s.Informers.Core().V1()
		r := &resizer{Session: s, claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister()}
		return []controller.Controller{{
			Name: "resize",
			Watches: []controller.Watch{
				{Informer: core.PersistentVolumeClaims().Informer(), Keys: claimKeys, Changed: changed},
				{Informer: s.Informers.Storage().V1().VolumeAttachments().Informer(), Keys: r.detachedKeys, Changed: session.IgnoreUpdates},
			},
			Reads:     []cache.SharedIndexInformer{core.PersistentVolumes().Informer(), core.Nodes().Informer()},
			Reconcile: r.reconcile, Workers: options.Workers, MinBackoff: options.Retry, MaxBackoff: options.RetryMax,
		}}, nil
	}
}

// claimKeys returns the key of a claim that might need to be resized.
func claimKeys(object any) []controller.Key {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Status.Phase != corev1.ClaimBound {
		return nil
	}
	if requested, current := sizes(claim); requested.Cmp(current) <= 0 && stateOf(claim) == "" {
		return nil
	}
	return []controller.Key{{Namespace: claim.Namespace, Name: claim.Name}}
}

// changed reports whether an update to a claim requires reconciliation. It ignores changes to
// conditions, because the controller itself writes them.
func changed(old, new any) bool {
	before, after := old.(*corev1.PersistentVolumeClaim), new.(*corev1.PersistentVolumeClaim)
	requestedBefore, currentBefore := sizes(before)
	requested, current := sizes(after)
	return before.UID != after.UID || before.Status.Phase != after.Status.Phase || requested.Cmp(requestedBefore) != 0 || current.Cmp(currentBefore) != 0 ||
		isNodeState(stateOf(before)) && stateOf(before) != stateOf(after)
}

// isNodeState reports whether the kubelet performs the next step of the resize.
func isNodeState(state corev1.ClaimResourceStatus) bool {
	switch state {
	case corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return true
	}
	return false
}

// detachedKeys maps one of the driver's VolumeAttachments to the key of the claim that is bound to
// the attached volume.
func (r *resizer) detachedKeys(object any) []controller.Key {
	attachment, ok := object.(*storagev1.VolumeAttachment)
	if !ok || attachment.Spec.Attacher != r.Description.Name || attachment.Spec.Source.PersistentVolumeName == nil {
		return nil
	}
	volume, err := r.volumes.Get(*attachment.Spec.Source.PersistentVolumeName)
	if err != nil || volume.Spec.ClaimRef == nil {
		return nil
	}
	return []controller.Key{{Namespace: volume.Spec.ClaimRef.Namespace, Name: volume.Spec.ClaimRef.Name}}
}

func (r *resizer) reconcile(ctx context.Context, key controller.Key) error {
	claim, err := r.claims.PersistentVolumeClaims(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	volume, err := r.BoundVolume(claim)
	if err != nil || volume == nil {
		return err
	}
	target, ok := plan(claim)
	if !ok {
		return nil
	}
	err = r.resize(ctx, claim.DeepCopy(), volume, target)
	if apierrors.IsConflict(err) { // the cache will soon contain the change
		return controller.RequeueAfter(50 * time.Millisecond)
	}
	return err
}
