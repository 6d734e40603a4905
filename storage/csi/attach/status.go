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

// object is JSON of a patch.
type object = map[string]any

// patch changes a VolumeAttachment. Lists of finalizers are merged by the API server, so that nobody else's change is lost; the UID keeps the change from
// a later attachment of the same name.
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

// hold keeps the attachment until the volume is detached, and notes under which ID of the node.
func (a *attacher) hold(ctx context.Context, va *storagev1.VolumeAttachment, nodeID string) error {
	if a.held(va.Finalizers) && va.Annotations[nodeIDAnnotation] == nodeID {
		return nil
	}
	return a.patch(ctx, va, object{"metadata": object{"finalizers": []string{a.finalizer}, "annotations": object{nodeIDAnnotation: nodeID}}})
}

// letGo ends the attachment. What else holds it sees that the volume is detached; otherwise it goes with this request.
func (a *attacher) letGo(ctx context.Context, va *storagev1.VolumeAttachment) error {
	err := a.patch(ctx, va, object{"metadata": object{"$deleteFromPrimitiveList/finalizers": []string{a.finalizer}}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || len(va.Finalizers) == 1 {
		return err
	}
	return a.patch(ctx, va, object{"status": object{"attached": false, "attachmentMetadata": nil, "detachError": nil}}, "status")
}

// markAttached tells kubelet and the attach-detach controller.
func (a *attacher) markAttached(ctx context.Context, va *storagev1.VolumeAttachment, metadata map[string]string) error {
	values := object{}
	for key := range va.Status.AttachmentMetadata {
		values[key] = nil // of an earlier attachment
	}
	for key, value := range metadata {
		values[key] = value
	}
	status := object{"attached": true, "attachError": nil, "attachmentMetadata": values}
	return a.patch(ctx, va, object{"status": status}, "status")
}

func (a *attacher) attachFailed(ctx context.Context, va *storagev1.VolumeAttachment, cause error) error {
	return a.failed(ctx, va, "attachError", "FailedAttachVolume", cause)
}

func (a *attacher) detachFailed(ctx context.Context, va *storagev1.VolumeAttachment, cause error) error {
	return a.failed(ctx, va, "detachError", "FailedDetachVolume", cause)
}

// failed tells what went wrong in the status and an event, and returns it, so that it is tried again. An end of the process is no failure.
func (a *attacher) failed(ctx context.Context, va *storagev1.VolumeAttachment, field, reason string, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	a.Events.Event(va, corev1.EventTypeWarning, reason, cause.Error())
	problem := storagev1.VolumeError{Time: metav1.Now(), Message: cause.Error()}
	if code := driver.CodeOf(cause); driver.Called(cause) {
		number := int32(code)
		problem.ErrorCode = &number
	}
	if err := a.patch(ctx, va, object{"status": object{field: problem}}, "status"); err != nil {
		return fmt.Errorf("%w (and %w)", cause, err)
	}
	return cause
}
