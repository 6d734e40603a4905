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

// reconcileVolume deletes a volume that its claim has released, and sees that the finalizer fits the reclaim policy, which may be changed.
func (p *provisioner) reconcileVolume(ctx context.Context, key controller.Key) error {
	pv, err := p.volumes.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read PersistentVolume %q: %w", key.Name, err)
	}
	if !p.own(pv) {
		return nil
	}
	if here, err := p.hereToo(pv); !here || err != nil {
		return err
	}
	policy, held := pv.Spec.PersistentVolumeReclaimPolicy, slices.Contains(pv.Finalizers, finalizer)
	switch {
	case policy != corev1.PersistentVolumeReclaimDelete && held:
		return p.patchVolume(ctx, pv, object{"$deleteFromPrimitiveList/finalizers": []string{finalizer}})
	case policy != corev1.PersistentVolumeReclaimDelete:
		return nil
	case pv.Status.Phase != corev1.VolumeReleased && !held && pv.DeletionTimestamp == nil:
		return p.patchVolume(ctx, pv, object{"finalizers": []string{finalizer}})
	case pv.Status.Phase != corev1.VolumeReleased || pv.DeletionTimestamp != nil && !held:
		return nil
	}
	return p.delete(ctx, pv)
}

// delete deletes the volume, then its PersistentVolume.
func (p *provisioner) delete(ctx context.Context, pv *corev1.PersistentVolume) error {
	if attached := p.attachments(pv); len(attached) > 0 {
		return p.notDeleted(ctx, pv, fmt.Errorf("delete volume: it is still attached to node %q", attached[0].Spec.NodeName))
	}
	// The cache lags behind, and an administrator may have given the volume to somebody since.
	now, err := p.Client.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read PersistentVolume %q: %w", pv.Name, err)
	}
	if now.UID != pv.UID || now.Status.Phase != corev1.VolumeReleased || now.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	own, err := p.Own(now)
	if err != nil {
		return p.notDeleted(ctx, pv, err)
	}
	if own == nil {
		return nil
	}
	if !p.deleted.has(pv.UID) {
		secrets, err := p.deletionSecrets(ctx, now)
		if err != nil {
			return p.notDeleted(ctx, pv, err)
		}
		request := &csi.DeleteVolumeRequest{VolumeId: own.Spec.CSI.VolumeHandle, Secrets: secrets}
		if err := p.deleteVolume(ctx, request); err != nil {
			return p.notDeleted(ctx, pv, err)
		}
		p.deleted.add(pv.UID)
	}
	return p.remove(ctx, now)
}

// remove deletes the PersistentVolume of a volume that is gone.
func (p *provisioner) remove(ctx context.Context, pv *corev1.PersistentVolume) error {
	own := []string{finalizer}
	if p.publishes {
		own = append(own, attach.Finalizer(p.name)) // nothing is attached
	}
	var held []string
	for _, name := range own {
		if slices.Contains(pv.Finalizers, name) {
			held = append(held, name)
		}
	}
	if len(held) > 0 {
		if err := p.patchVolume(ctx, pv, object{"$deleteFromPrimitiveList/finalizers": held}); err != nil {
			return err
		}
	}
	if pv.DeletionTimestamp == nil {
		err := p.Client.CoreV1().PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(pv.UID)}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete PersistentVolume %q: %w", pv.Name, err)
		}
	}
	p.deleted.forget(pv.UID)
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

// attachments are what still has the volume.
func (p *provisioner) attachments(pv *corev1.PersistentVolume) []*storagev1.VolumeAttachment {
	if !p.publishes {
		return nil
	}
	return p.AttachmentsOf(pv.Name)
}

// deletionSecrets are what the driver needs to delete the volume: what the PersistentVolume keeps, or, for those of older provisioners, what its class says.
func (p *provisioner) deletionSecrets(ctx context.Context, pv *corev1.PersistentVolume) (map[string]string, error) {
	if name := pv.Annotations[deletionSecretName]; name != "" {
		return parameters.Fetch(ctx, p.Client, &corev1.SecretReference{Name: name, Namespace: pv.Annotations[deletionSecretNamespace]})
	}
	class, err := p.classes.Get(pv.Spec.StorageClassName)
	if err != nil || pv.Spec.ClaimRef == nil {
		return nil, nil // without its class there is nothing that could name one
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}}
	reference, err := parameters.Secret(class.Parameters, parameters.Provisioner, parameters.ClaimValues(pv.Name, claim))
	if err != nil {
		return nil, err
	}
	return parameters.Fetch(ctx, p.Client, reference)
}

// notDeleted tells the administrator, and returns the error, so that it is tried again.
func (p *provisioner) notDeleted(ctx context.Context, pv *corev1.PersistentVolume, cause error) error {
	if ctx.Err() == nil {
		p.Events.Event(pv, corev1.EventTypeWarning, "VolumeFailedDelete", cause.Error())
	}
	return cause
}
