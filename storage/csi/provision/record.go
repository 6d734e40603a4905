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

// object is JSON of a patch.
type object = map[string]any

// patchClaim changes metadata of a claim, of exactly this one and not of a later one of the same name, and returns it as it is now.
func (p *provisioner) patchClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, metadata object) (*corev1.PersistentVolumeClaim, error) {
	metadata["uid"] = claim.UID
	text, err := json.Marshal(object{"metadata": metadata})
	if err != nil {
		return nil, fmt.Errorf("encode patch of claim: %w", err)
	}
	now, err := p.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("patch claim \"%s/%s\": %w", claim.Namespace, claim.Name, err)
	}
	return now, nil
}

// begin says durably that there may be a volume from now on, and returns the claim with that. The cache lags behind, and a volume that was made for a
// claim that is gone since, or does not want it any more, would never be deleted: a claim that is gone gives nil, and one that has changed is looked at again.
func (p *provisioner) begin(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	now, err := p.patchClaim(ctx, claim, object{"finalizers": []string{pending}, "resourceVersion": claim.ResourceVersion})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if apierrors.IsConflict(err) {
		return nil, controller.After(behind)
	}
	return now, err
}

// end says that there is no volume that nobody answers for. Further annotations may be changed by the same request.
func (p *provisioner) end(ctx context.Context, claim *corev1.PersistentVolumeClaim, annotations object) error {
	metadata := object{"$deleteFromPrimitiveList/finalizers": []string{pending}}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	_, err := p.patchClaim(ctx, claim, metadata)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// deleted remembers the volumes that this process has deleted, for as long as their PersistentVolumes are seen.
type deleted struct {
	mu   sync.Mutex
	uids map[types.UID]bool
}

func (d *deleted) add(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uids == nil {
		d.uids = map[types.UID]bool{}
	}
	d.uids[uid] = true
}

func (d *deleted) has(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.uids[uid]
}

func (d *deleted) forget(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.uids, uid)
}
