package attach

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/storage/csi/driver"
)

// object is a JSON object in a patch.
type object = map[string]any

// patch patches a VolumeAttachment. The API server merges finalizer lists, so concurrent changes
// are not lost. The UID precondition prevents changes to a later attachment with the same name.
func (a *attacher) patch(ctx context.Context, va *storagev1.VolumeAttachment, change object, subresources ...string) error {
	metadata, _ := change["metadata"].(object)
	if metadata == nil {
		metadata = object{}
		change["metadata"] = metadata
	}
	metadata["uid"] = va.UID
	text, err := json.Marshal(change)
	if err == nil {
		_, err = a.Client.StorageV1().VolumeAttachments().Patch(ctx, va.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{}, subresources...)
	}
	if err != nil {
		return fmt.Errorf("patch VolumeAttachment %q: %w", va.Name, err)
	}
	return nil
}

// addFinalizer adds the finalizer and records the node's ID.
func (a *attacher) addFinalizer(ctx context.Context, va *storagev1.VolumeAttachment, nodeID string) error {
	if a.hasFinalizer(va.Finalizers) && va.Annotations[nodeIDAnnotation] == nodeID {
		return nil
	}
	return a.patch(ctx, va, object{"metadata": object{"finalizers": []string{a.finalizer}, "annotations": object{nodeIDAnnotation: nodeID}}})
}

// release removes the finalizer. If the attachment has other finalizers, release also sets its
// status to detached. Otherwise, removing the finalizer deletes the attachment.
func (a *attacher) release(ctx context.Context, va *storagev1.VolumeAttachment) error {
	err := a.patch(ctx, va, object{"metadata": object{"$deleteFromPrimitiveList/finalizers": []string{a.finalizer}}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || len(va.Finalizers) == 1 {
		return err
	}
	return a.patch(ctx, va, object{"status": object{"attached": false, "attachmentMetadata": nil, "detachError": nil}}, "status")
}

// markAttached sets the status to attached.
func (a *attacher) markAttached(ctx context.Context, va *storagev1.VolumeAttachment, metadata map[string]string) error {
	values := object{}
	for key := range va.Status.AttachmentMetadata {
		values[key] = nil // delete keys of an earlier attachment
	}
	for key, value := range metadata {
		values[key] = value
	}
	status := object{"attached": true, "attachError": nil, "attachmentMetadata": values}
	return a.patch(ctx, va, object{"status": status}, "status")
}

func (a *attacher) recordAttachFailure(ctx context.Context, va *storagev1.VolumeAttachment, cause error) error {
	return a.recordFailure(ctx, va, "attachError", "FailedAttachVolume", cause)
}

func (a *attacher) recordDetachFailure(ctx context.Context, va *storagev1.VolumeAttachment, cause error) error {
	return a.recordFailure(ctx, va, "detachError", "FailedDetachVolume", cause)
}

// recordFailure records an error in the status and in an event. It returns the error so that the
// key is retried. It ignores errors caused by process shutdown.
func (a *attacher) recordFailure(ctx context.Context, va *storagev1.VolumeAttachment, field, reason string, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	a.Events.Event(va, corev1.EventTypeWarning, reason, cause.Error())
	volumeErr := storagev1.VolumeError{Time: metav1.Now(), Message: cause.Error()}
	if code := driver.CodeOf(cause); driver.IsCallError(cause) {
		number := int32(code)
		volumeErr.ErrorCode = &number
	}
	if err := a.patch(ctx, va, object{"status": object{field: volumeErr}}, "status"); err != nil {
		return fmt.Errorf("%w (and %w)", cause, err)
	}
	return cause
}
