package attach

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/parameters"
)

// reconcileDetach detaches the volume of a VolumeAttachment that is being deleted. If the
// VolumeAttachment does not have the finalizer, reconcileDetach does nothing, because the volume is
// already detached or was never attached.
func (a *attacher) reconcileDetach(ctx context.Context, key controller.Key) error {
	va, err := a.attachments.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read VolumeAttachment %q: %w", key.Name, err)
	}
	if va.DeletionTimestamp == nil || !a.hasFinalizer(va.Finalizers) {
		return nil
	}
	if a.canPublish {
		if err := a.unpublish(ctx, va); err != nil {
			return a.recordDetachFailure(ctx, va, err)
		}
	}
	return a.release(ctx, va)
}

func (a *attacher) unpublish(ctx context.Context, va *storagev1.VolumeAttachment) error {
	spec, _, err := a.source(va)
	if err != nil {
		return err
	}
	nodeID, err := a.attachedNodeID(va)
	if err != nil {
		return err
	}
	secrets, err := parameters.Fetch(ctx, a.Client, spec.CSI.ControllerPublishSecretRef)
	if err != nil {
		return err
	}
	request := &csi.ControllerUnpublishVolumeRequest{VolumeId: spec.CSI.VolumeHandle, NodeId: nodeID, Secrets: secrets}
	release, err := a.acquire(ctx, a.detachSlots)
	if err != nil {
		return err
	}
	defer release()
	_, err = a.Driver.Controller().ControllerUnpublishVolume(ctx, request)
	return err
}
