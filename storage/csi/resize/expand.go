package resize

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/storage/csi/access"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/parameters"
)

// resize expands a volume to the target size. It records each step before the next step, so that a
// restarted process continues at the same step.
func (r *resizer) resize(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, target resource.Quantity) error {
	claim, err := r.markInProgress(ctx, claim, target)
	if err != nil {
		return err
	}
	size, onNode, err := r.expand(ctx, volume, target)
	if err != nil {
		return r.recordFailure(ctx, claim, err)
	}
	if err := r.updateVolume(ctx, volume, size); err != nil {
		return err
	}
	return r.complete(ctx, claim, size, onNode)
}

// markInProgress records the size that resize is about to request from the driver.
func (r *resizer) markInProgress(ctx context.Context, claim *corev1.PersistentVolumeClaim, target resource.Quantity) (*corev1.PersistentVolumeClaim, error) {
	allocated := claim.Status.AllocatedResources[corev1.ResourceStorage]
	if stateOf(claim) == corev1.PersistentVolumeClaimControllerResizeInProgress && allocated.Cmp(target) == 0 {
		return claim, nil
	}
	if claim.Status.AllocatedResources == nil {
		claim.Status.AllocatedResources = corev1.ResourceList{}
	}
	claim.Status.AllocatedResources[corev1.ResourceStorage] = target
	setState(claim, corev1.PersistentVolumeClaimControllerResizeInProgress)
	setCondition(claim, corev1.PersistentVolumeClaimResizing, "", "")
	return r.updateStatus(ctx, claim)
}

// expand calls the driver. If the driver expands volumes only on the node, expand is a no-op.
// onNode is true if the kubelet must continue the expansion.
func (r *resizer) expand(ctx context.Context, volume *corev1.PersistentVolume, target resource.Quantity) (size resource.Quantity, onNode bool, err error) {
	if !r.Description.Can(csi.ControllerServiceCapability_RPC_EXPAND_VOLUME) {
		return target, true, r.checkNodeExpansion(ctx)
	}
	secrets, err := parameters.Fetch(ctx, r.Client, volume.Spec.CSI.ControllerExpandSecretRef)
	if err != nil {
		return target, false, err
	}
	use := access.OfVolume(&volume.Spec, r.Description.Can(csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER))
	capability, err := use.Combined(volume.Spec.AccessModes)
	if err != nil {
		return target, false, err
	}
	resp, err := r.Driver.Controller().ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
		VolumeId: volume.Spec.CSI.VolumeHandle, CapacityRange: &csi.CapacityRange{RequiredBytes: target.Value()},
		Secrets: secrets, VolumeCapability: capability,
	})
	if err != nil {
		return target, false, err
	}
	if resp.GetCapacityBytes() < target.Value() {
		return target, false, fmt.Errorf("expand volume %q: CSI driver %q reports a size of %d bytes, less than the requested %d",
			volume.Name, r.Description.Name, resp.GetCapacityBytes(), target.Value())
	}
	return *resource.NewQuantity(resp.GetCapacityBytes(), resource.BinarySI), resp.GetNodeExpansionRequired(), nil
}

// checkNodeExpansion returns an error if the driver cannot expand volumes on the node.
func (r *resizer) checkNodeExpansion(ctx context.Context) error {
	resp, err := r.Driver.Node().NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil && driver.CodeOf(err) != codes.Unimplemented {
		return err
	}
	for _, capability := range resp.GetCapabilities() {
		if capability.GetRpc().GetType() == csi.NodeServiceCapability_RPC_EXPAND_VOLUME {
			return nil
		}
	}
	return &driver.Error{Driver: r.Description.Name, Method: "ControllerExpandVolume", Code: codes.Unimplemented, Message: "the driver cannot expand volumes"}
}

// updateVolume writes the size to the PersistentVolume.
func (r *resizer) updateVolume(ctx context.Context, volume *corev1.PersistentVolume, size resource.Quantity) error {
	if current := volume.Spec.Capacity[corev1.ResourceStorage]; current.Cmp(size) >= 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": volume.UID},
		"spec":     map[string]any{"capacity": map[string]any{string(corev1.ResourceStorage): size.String()}},
	})
	if err != nil {
		return err
	}
	_, err = r.Client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("update size of PersistentVolume %q: %w", volume.Name, err)
	}
	return nil
}

// complete writes the size to the claim's status. If onNode is set, it leaves the remaining steps
// to the kubelet.
func (r *resizer) complete(ctx context.Context, claim *corev1.PersistentVolumeClaim, size resource.Quantity, onNode bool) error {
	if onNode {
		setState(claim, corev1.PersistentVolumeClaimNodeResizePending)
		setCondition(claim, corev1.PersistentVolumeClaimFileSystemResizePending, "", "The kubelet expands the file system when a pod uses the volume.")
	} else {
		if claim.Status.Capacity == nil {
			claim.Status.Capacity = corev1.ResourceList{}
		}
		claim.Status.Capacity[corev1.ResourceStorage] = size
		setState(claim, "")
		setCondition(claim, "", "", "")
	}
	claim, err := r.updateStatus(ctx, claim)
	if err != nil {
		return err
	}
	if onNode {
		r.Events.Eventf(claim, corev1.EventTypeNormal, "FileSystemResizeRequired", "The volume was expanded to %s; its file system must still be expanded on the node.", size.String())
	} else {
		r.Events.Eventf(claim, corev1.EventTypeNormal, "VolumeResizeSuccessful", "The volume was expanded to %s.", size.String())
	}
	return nil
}

// recordFailure records an error in the claim's status and in an event. If the error guarantees
// that the driver has changed nothing, the status allows the user to request a smaller size.
func (r *resizer) recordFailure(ctx context.Context, claim *corev1.PersistentVolumeClaim, cause error) error {
	state := stateOf(claim)
	// FailedPrecondition means that the volume is in use, so a later attempt can succeed.
	if driver.HasNoEffect(cause) && driver.CodeOf(cause) != codes.FailedPrecondition {
		setState(claim, corev1.PersistentVolumeClaimControllerResizeInfeasible)
	}
	conditionChanged := setCondition(claim, corev1.PersistentVolumeClaimControllerResizeError, "", cause.Error())
	if state == stateOf(claim) && !conditionChanged {
		return cause
	}
	if _, err := r.updateStatus(ctx, claim); err != nil {
		return fmt.Errorf("%w; %w", cause, err)
	}
	r.Events.Event(claim, corev1.EventTypeWarning, "VolumeResizeFailed", cause.Error())
	return cause
}
