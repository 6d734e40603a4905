package provision

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/attach"
	"github.com/slipway-platform/slipway/storage/csi/parameters"
)

// reconcileVolume deletes a released volume. It also adds or removes the finalizer when the reclaim
// policy changes.
func (p *provisioner) reconcileVolume(ctx context.Context, key controller.Key) error {
	pv, err := p.volumes.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read PersistentVolume %q: %w", key.Name, err)
	}
	if !p.isOwn(pv) {
		return nil
	}
	if served, err := p.servesVolume(pv); !served || err != nil {
		return err
	}
	policy, protected := pv.Spec.PersistentVolumeReclaimPolicy, slices.Contains(pv.Finalizers, volumeFinalizer)
	switch {
	case policy != corev1.PersistentVolumeReclaimDelete && protected:
		return p.patchVolume(ctx, pv, object{"$deleteFromPrimitiveList/finalizers": []string{volumeFinalizer}})
	case policy != corev1.PersistentVolumeReclaimDelete:
		return nil
	case pv.Status.Phase != corev1.VolumeReleased && !protected && pv.DeletionTimestamp == nil:
		return p.patchVolume(ctx, pv, object{"finalizers": []string{volumeFinalizer}})
	case pv.Status.Phase != corev1.VolumeReleased || pv.DeletionTimestamp != nil && !protected:
		return nil
	}
	return p.delete(ctx, pv)
}

// delete deletes the volume, then its PersistentVolume.
func (p *provisioner) delete(ctx context.Context, pv *corev1.PersistentVolume) error {
	if attachments := p.attachments(pv); len(attachments) > 0 {
		return p.recordDeleteFailure(ctx, pv, fmt.Errorf("delete volume: it is still attached to node %q", attachments[0].Spec.NodeName))
	}
	// Read the current PersistentVolume, because the cache might be stale and an administrator
	// might have bound the volume again.
	current, err := p.Client.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read PersistentVolume %q: %w", pv.Name, err)
	}
	if current.UID != pv.UID || current.Status.Phase != corev1.VolumeReleased || current.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	translated, err := p.OwnVolume(current)
	if err != nil {
		return p.recordDeleteFailure(ctx, pv, err)
	}
	if translated == nil {
		return nil
	}
	if !p.deleted.has(pv.UID) {
		secrets, err := p.deletionSecrets(ctx, current)
		if err != nil {
			return p.recordDeleteFailure(ctx, pv, err)
		}
		request := &csi.DeleteVolumeRequest{VolumeId: translated.Spec.CSI.VolumeHandle, Secrets: secrets}
		if err := p.deleteVolume(ctx, request); err != nil {
			return p.recordDeleteFailure(ctx, pv, err)
		}
		p.deleted.add(pv.UID)
	}
	return p.removeVolume(ctx, current)
}

// removeVolume deletes the PersistentVolume of a deleted volume.
func (p *provisioner) removeVolume(ctx context.Context, pv *corev1.PersistentVolume) error {
	finalizers := []string{volumeFinalizer}
	if p.canPublish {
		finalizers = append(finalizers, attach.Finalizer(p.name)) // the volume is not attached
	}
	var present []string
	for _, name := range finalizers {
		if slices.Contains(pv.Finalizers, name) {
			present = append(present, name)
		}
	}
	if len(present) > 0 {
		if err := p.patchVolume(ctx, pv, object{"$deleteFromPrimitiveList/finalizers": present}); err != nil {
			return err
		}
	}
	if pv.DeletionTimestamp == nil {
		err := p.Client.CoreV1().PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(pv.UID)}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete PersistentVolume %q: %w", pv.Name, err)
		}
	}
	p.deleted.remove(pv.UID)
	return nil
}

func (p *provisioner) patchVolume(ctx context.Context, pv *corev1.PersistentVolume, metadata object) error {
	metadata["uid"] = pv.UID
	text, err := json.Marshal(object{"metadata": metadata})
	if err == nil {
		_, err = p.Client.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch PersistentVolume %q: %w", pv.Name, err)
	}
	return nil
}

// attachments returns the volume's attachments, or nil if the driver does not attach volumes.
func (p *provisioner) attachments(pv *corev1.PersistentVolume) []*storagev1.VolumeAttachment {
	if !p.canPublish {
		return nil
	}
	return p.AttachmentsOf(pv.Name)
}

// deletionSecrets returns the secrets for DeleteVolume: the secrets that the PersistentVolume
// references or, for volumes created by older provisioners, the secrets that the volume's
// StorageClass selects.
func (p *provisioner) deletionSecrets(ctx context.Context, pv *corev1.PersistentVolume) (map[string]string, error) {
	if name := pv.Annotations[deletionSecretName]; name != "" {
		return parameters.Fetch(ctx, p.Client, &corev1.SecretReference{Name: name, Namespace: pv.Annotations[deletionSecretNamespace]})
	}
	class, err := p.classes.Get(pv.Spec.StorageClassName)
	if err != nil || pv.Spec.ClaimRef == nil {
		return nil, nil // without a class, no secret is selected
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}}
	reference, err := parameters.Secret(class.Parameters, parameters.Provisioner, parameters.ClaimValues(pv.Name, claim))
	if err != nil {
		return nil, err
	}
	return parameters.Fetch(ctx, p.Client, reference)
}

// recordDeleteFailure records the error in an event and returns the error, so that the key is
// retried.
func (p *provisioner) recordDeleteFailure(ctx context.Context, pv *corev1.PersistentVolume, cause error) error {
	if ctx.Err() == nil {
		p.Events.Event(pv, corev1.EventTypeWarning, "VolumeFailedDelete", cause.Error())
	}
	return cause
}
