// Package resize makes volumes of a CSI driver larger as their claims ask for it, and lets users take back a request that the
// driver cannot fulfil (KEP-1790, recovery from failed volume expansion). It makes the volume larger in the storage and in the
// PersistentVolume; what is left to do on the node kubelet does, which finds NodeResizePending in the claim's status.
//
// That a volume is in use is learned from the driver, not from a cache of every pod: a driver that grows volumes only while they are
// detached says so, and the end of a VolumeAttachment causes the next try.
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

// Options are what an administrator may choose.
type Options struct {
	// Workers is how many volumes are made larger at once; 0 means 10.
	Workers int
	// Retry is the delay after the first error, which doubles up to RetryMax; 0 means 1 second and 5 minutes.
	Retry, RetryMax time.Duration
}

// resizer serves the volumes of one driver.
type resizer struct {
	*session.Session
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
}

// Feature makes the loop of a driver.
func Feature(options Options) session.Feature {
	return func(s *session.Session) ([]controller.Loop, error) {
		core := s.Informers.Core().V1()
		r := &resizer{Session: s, claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister()}
		return []controller.Loop{{
			Name: "resize",
			Watches: []controller.Watch{
				{Informer: core.PersistentVolumeClaims().Informer(), Keys: claimKeys, Changed: changed},
				{Informer: s.Informers.Storage().V1().VolumeAttachments().Informer(), Keys: r.detachedKeys, Changed: session.Unchanged},
			},
			Reads:     []cache.SharedIndexInformer{core.PersistentVolumes().Informer(), core.Nodes().Informer()},
			Reconcile: r.reconcile, Workers: options.Workers, Retry: options.Retry, RetryMax: options.RetryMax,
		}}, nil
	}
}

// claimKeys is a claim for which something may have to be done.
func claimKeys(object any) []controller.Key {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Status.Phase != corev1.ClaimBound {
		return nil
	}
	if asked, have := sizes(claim); asked.Cmp(have) <= 0 && stateOf(claim) == "" {
		return nil
	}
	return []controller.Key{{Namespace: claim.Namespace, Name: claim.Name}}
}

// changed leaves out what the loop itself tells in conditions.
func changed(old, new any) bool {
	before, after := old.(*corev1.PersistentVolumeClaim), new.(*corev1.PersistentVolumeClaim)
	askedBefore, haveBefore := sizes(before)
	asked, have := sizes(after)
	return before.UID != after.UID || before.Status.Phase != after.Status.Phase || asked.Cmp(askedBefore) != 0 || have.Cmp(haveBefore) != 0 ||
		fromNode(stateOf(before)) && stateOf(before) != stateOf(after)
}

// fromNode tells whether kubelet has the next step.
func fromNode(state corev1.ClaimResourceStatus) bool {
	switch state {
	case corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return true
	}
	return false
}

// detachedKeys is the claim of a volume that is detached.
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
	volume, err := r.Claimed(claim)
	if err != nil || volume == nil {
		return err
	}
	target, ok := plan(claim)
	if !ok {
		return nil
	}
	err = r.grow(ctx, claim.DeepCopy(), volume, target)
	if apierrors.IsConflict(err) { // the cache will soon show what was overlooked
		return controller.After(50 * time.Millisecond)
	}
	return err
}
