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

// cloningFinalizer protects a claim from deletion while its volume is being cloned. It is the
// external-provisioner's finalizer. As in the external-provisioner, the finalizer stays on the
// claim until the claim is deleted.
const cloningFinalizer = "provisioner.storage.kubernetes.io/cloning-protection"

// protectSource adds the finalizer to the claim whose volume is about to be cloned.
func (p *provisioner) protectSource(ctx context.Context, source *corev1.PersistentVolumeClaim) error {
	if source == nil || slices.Contains(source.Finalizers, cloningFinalizer) {
		return nil
	}
	_, err := p.patchClaim(ctx, source, object{"finalizers": []string{cloningFinalizer}})
	return err
}

// reconcileSource removes the finalizer from a claim that is being deleted, as soon as no volume is
// being cloned from the claim.
func (p *provisioner) reconcileSource(ctx context.Context, key controller.Key) error {
	source, err := p.claimsByNS.PersistentVolumeClaims(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read claim \"%s/%s\": %w", key.Namespace, key.Name, err)
	}
	if source.DeletionTimestamp == nil || !slices.Contains(source.Finalizers, cloningFinalizer) {
		return nil
	}
	if own, err := p.ownsSource(source); err != nil || !own {
		return err
	}
	claims, err := p.claimsByNS.PersistentVolumeClaims(key.Namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list claims of namespace %q: %w", key.Namespace, err)
	}
	for _, claim := range claims {
		if isCloning(claim, source.Name) {
			return nil // the claim is requeued when the clone is complete
		}
	}
	_, err = p.patchClaim(ctx, source, object{"$deleteFromPrimitiveList/finalizers": []string{cloningFinalizer}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ownsSource reports whether this driver is responsible for removing a claim's cloning finalizer.
// It returns true unless the claim's volume belongs to another driver.
func (p *provisioner) ownsSource(source *corev1.PersistentVolumeClaim) (bool, error) {
	pv, err := p.volumes.Get(source.Spec.VolumeName)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read PersistentVolume %q: %w", source.Spec.VolumeName, err)
	}
	volume, err := p.OwnVolume(pv)
	return volume != nil, err
}

// isCloning reports whether the volume for claim might currently be cloned from the volume of the
// claim named source.
func isCloning(claim *corev1.PersistentVolumeClaim, source string) bool {
	from := dataSource(claim)
	return from != nil && kindOf(from) == claimKind && from.Name == source && (isPending(claim) || claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil)
}

// sourceKeys returns the keys of claims whose cloning finalizer might need to be removed: the claim
// itself, if it is being deleted and has the finalizer, and the claim from which it is cloned.
func sourceKeys(object any) (keys []controller.Key) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	if claim.DeletionTimestamp != nil && slices.Contains(claim.Finalizers, cloningFinalizer) {
		keys = append(keys, controller.Key{Namespace: claim.Namespace, Name: claim.Name})
	}
	if source := dataSource(claim); source != nil && kindOf(source) == claimKind {
		keys = append(keys, controller.Key{Namespace: claim.Namespace, Name: source.Name})
	}
	return keys
}

func sourceChanged(old, new any) bool {
	a, b := old.(*corev1.PersistentVolumeClaim), new.(*corev1.PersistentVolumeClaim)
	return isPending(a) != isPending(b) || a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() || a.Spec.VolumeName != b.Spec.VolumeName
}
