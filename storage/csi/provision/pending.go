package provision

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/controller"
)

// ClaimMetadata returns the claim finalizers and annotations that the provisioner changes.
func ClaimMetadata() (finalizers, annotations []string) {
	return []string{pendingFinalizer, cloningFinalizer}, []string{nodeAnnotation, oldNodeAnnotation}
}

// object is a JSON object in a patch.
type object = map[string]any

// patchClaim patches the metadata of exactly this claim, not of a later claim with the same name.
// It returns the patched claim.
func (p *provisioner) patchClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, metadata object) (*corev1.PersistentVolumeClaim, error) {
	metadata["uid"] = claim.UID
	text, err := json.Marshal(object{"metadata": metadata})
	if err != nil {
		return nil, fmt.Errorf("encode claim patch: %w", err)
	}
	patched, err := p.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("patch claim \"%s/%s\": %w", claim.Namespace, claim.Name, err)
	}
	return patched, nil
}

// markPending adds the pending finalizer and returns the patched claim. The cache might be stale:
// the claim might no longer exist or might have changed, and its volume would then never be
// deleted. Therefore, markPending returns nil if the claim no longer exists, and a requeue error if
// the claim has changed.
func (p *provisioner) markPending(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	patched, err := p.patchClaim(ctx, claim, object{"finalizers": []string{pendingFinalizer}, "resourceVersion": claim.ResourceVersion})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if apierrors.IsConflict(err) {
		return nil, controller.RequeueAfter(cacheLagDelay)
	}
	return patched, err
}

// clearPending removes the pending finalizer. The caller must be certain that no volume exists
// without a PersistentVolume. The same request can change annotations.
func (p *provisioner) clearPending(ctx context.Context, claim *corev1.PersistentVolumeClaim, annotations object) error {
	metadata := object{"$deleteFromPrimitiveList/finalizers": []string{pendingFinalizer}}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	_, err := p.patchClaim(ctx, claim, metadata)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// deletedSet holds the volumes that this process has deleted, until their PersistentVolumes no
// longer exist.
type deletedSet struct {
	mu   sync.Mutex
	uids map[types.UID]bool
}

func (d *deletedSet) add(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uids == nil {
		d.uids = map[types.UID]bool{}
	}
	d.uids[uid] = true
}

func (d *deletedSet) has(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.uids[uid]
}

func (d *deletedSet) remove(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.uids, uid)
}
