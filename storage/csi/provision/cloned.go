package provision

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/controller"
)

// cloning holds a claim that is deleted while its volume is cloned. It is that of the external provisioner, and like there it stays until the deletion.
const cloning = "provisioner.storage.kubernetes.io/cloning-protection"

// protectSource holds the claim whose volume is about to be cloned.
func (p *provisioner) protectSource(ctx context.Context, source *corev1.PersistentVolumeClaim) error {
	if source == nil || slices.Contains(source.Finalizers, cloning) {
		return nil
	}
	_, err := p.patchClaim(ctx, source, object{"finalizers": []string{cloning}})
	return err
}

// reconcileSource lets a claim go that is deleted, once no volume is made from it any more.
func (p *provisioner) reconcileSource(ctx context.Context, key controller.Key) error {
	source, err := p.claimsByNS.PersistentVolumeClaims(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read claim \"%s/%s\": %w", key.Namespace, key.Name, err)
	}
	if source.DeletionTimestamp == nil || !slices.Contains(source.Finalizers, cloning) {
		return nil
	}
	claims, err := p.claimsByNS.PersistentVolumeClaims(key.Namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list claims of namespace %q: %w", key.Namespace, err)
	}
	for _, claim := range claims {
		if clones(claim, source.Name) {
			return nil // its end will be seen
		}
	}
	_, err = p.patchClaim(ctx, source, object{"$deleteFromPrimitiveList/finalizers": []string{cloning}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// clones tells whether a volume may be being made for a claim from that of another one.
func clones(claim *corev1.PersistentVolumeClaim, source string) bool {
	from := dataSource(claim)
	return from != nil && kindOf(from) == claimKind && from.Name == source && (isPending(claim) || claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil)
}

// sourceKeys are a claim that is held, and the source of a clone.
func sourceKeys(object any) (keys []controller.Key) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	if claim.DeletionTimestamp != nil && slices.Contains(claim.Finalizers, cloning) {
		keys = append(keys, controller.Key{Namespace: claim.Namespace, Name: claim.Name})
	}
	if from := dataSource(claim); from != nil && kindOf(from) == claimKind {
		keys = append(keys, controller.Key{Namespace: claim.Namespace, Name: from.Name})
	}
	return keys
}

func sourceChanged(old, new any) bool {
	a, b := old.(*corev1.PersistentVolumeClaim), new.(*corev1.PersistentVolumeClaim)
	return isPending(a) != isPending(b) || a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() || a.Spec.VolumeName != b.Spec.VolumeName
}
