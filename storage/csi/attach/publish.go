package attach

import (
	"context"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/access"
	"github.com/slipway-platform/slipway/storage/csi/parameters"
)

// reconcileAttach attaches one volume.
func (a *attacher) reconcileAttach(ctx context.Context, key controller.Key) error {
	va, err := a.attachments.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read VolumeAttachment %q: %w", key.Name, err)
	}
	reattach := a.reattach.remove(va.Name)
	if va.DeletionTimestamp != nil || va.Status.Attached && !reattach {
		return nil
	}
	if !a.canPublish {
		return a.markAttached(ctx, va, nil)
	}
	metadata, err := a.publish(ctx, va)
	if err != nil {
		return a.recordAttachFailure(ctx, va, err)
	}
	return a.markAttached(ctx, va, metadata)
}

// publish attaches the volume. It validates the attachment before adding the finalizer, because a
// finalizer on an invalid attachment would only block its deletion.
func (a *attacher) publish(ctx context.Context, va *storagev1.VolumeAttachment) (map[string]string, error) {
	spec, pv, err := a.source(va)
	if err != nil {
		return nil, err
	}
	nodeID, err := a.nodeID(va.Spec.NodeName)
	if err != nil {
		return nil, err
	}
	request, err := a.publishRequest(spec, nodeID)
	if err != nil {
		return nil, err
	}
	if request.Secrets, err = parameters.Fetch(ctx, a.Client, spec.CSI.ControllerPublishSecretRef); err != nil {
		return nil, err
	}
	if pv != nil {
		if err := a.protect(ctx, pv); err != nil {
			return nil, err
		}
	}
	if err := a.addFinalizer(ctx, va, nodeID); err != nil {
		return nil, err
	}
	release, err := a.acquire(ctx, a.attachSlots)
	if err != nil {
		return nil, err
	}
	defer release()
	resp, err := a.Driver.Controller().ControllerPublishVolume(ctx, request)
	return resp.GetPublishContext(), err
}

func (a *attacher) publishRequest(spec *corev1.PersistentVolumeSpec, nodeID string) (*csi.ControllerPublishVolumeRequest, error) {
	if spec.CSI.ReadOnly && !a.Description.Can(csi.ControllerServiceCapability_RPC_PUBLISH_READONLY) {
		return nil, errors.New("attach volume: it is read-only and the driver cannot attach read-only (PUBLISH_READONLY)")
	}
	use := access.OfVolume(spec, a.Description.Can(csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER))
	capability, err := use.Combined(spec.AccessModes)
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeRequest{
		VolumeId: spec.CSI.VolumeHandle, NodeId: nodeID, VolumeCapability: capability,
		Readonly: spec.CSI.ReadOnly, VolumeContext: spec.CSI.VolumeAttributes,
	}, nil
}

// source returns an attachment's volume: its PersistentVolume or its inline volume spec.
func (a *attacher) source(va *storagev1.VolumeAttachment) (*corev1.PersistentVolumeSpec, *corev1.PersistentVolume, error) {
	name, inline := va.Spec.Source.PersistentVolumeName, va.Spec.Source.InlineVolumeSpec
	switch {
	case name != nil && inline != nil:
		return nil, nil, fmt.Errorf("attach volume: VolumeAttachment %q has both a PersistentVolume and an inline volume spec", va.Name)
	case inline != nil:
		if inline.CSI == nil {
			return nil, nil, fmt.Errorf("attach volume: the inline volume spec of VolumeAttachment %q is not for a CSI volume", va.Name)
		}
		return inline, nil, nil
	case name == nil:
		return nil, nil, fmt.Errorf("attach volume: VolumeAttachment %q has no PersistentVolume", va.Name)
	}
	pv, err := a.volumes.Get(*name)
	if err != nil {
		return nil, nil, fmt.Errorf("read PersistentVolume %q: %w", *name, err)
	}
	translated, err := a.OwnVolume(pv)
	if err != nil {
		return nil, nil, err
	}
	if translated == nil {
		return nil, nil, fmt.Errorf("attach PersistentVolume %q: it is not a volume of CSI driver %q", pv.Name, a.name)
	}
	if pv.DeletionTimestamp != nil && va.DeletionTimestamp == nil {
		return nil, nil, fmt.Errorf("attach PersistentVolume %q: it is being deleted", pv.Name)
	}
	return &translated.Spec, pv, nil
}
