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

// grow brings a volume to a size. Each step is written down before the next, so that a process that starts anew goes on where
// the last one ended.
func (r *resizer) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, target resource.Quantity) error {
	claim, err := r.begin(ctx, claim, target)
	if err != nil {
		return err
	}
	size, onNode, err := r.expand(ctx, volume, target)
	if err != nil {
		return r.failed(ctx, claim, err)
	}
	if err := r.record(ctx, volume, size); err != nil {
		return err
	}
	return r.finish(ctx, claim, size, onNode)
}

// begin says which size the driver is going to be asked for.
func (r *resizer) begin(ctx context.Context, claim *corev1.PersistentVolumeClaim, target resource.Quantity) (*corev1.PersistentVolumeClaim, error) {
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
	return r.write(ctx, claim)
}

// expand asks the driver. A driver that grows volumes on the node alone has nothing to do here. onNode tells whether kubelet
// has to go on.
func (r *resizer) expand(ctx context.Context, volume *corev1.PersistentVolume, target resource.Quantity) (size resource.Quantity, onNode bool, err error) {
	if !r.Description.Can(csi.ControllerServiceCapability_RPC_EXPAND_VOLUME) {
		return target, true, r.growsOnNode(ctx)
	}
	secrets, err := parameters.Fetch(ctx, r.Client, volume.Spec.CSI.ControllerExpandSecretRef)
	if err != nil {
		return target, false, err
	}
	use := access.OfVolume(&volume.Spec, r.Description.Can(csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER))
	capability, err := use.One(volume.Spec.AccessModes)
	if err != nil {
		return target, false, err
	}
	answer, err := r.Driver.Controller().ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
		VolumeId: volume.Spec.CSI.VolumeHandle, CapacityRange: &csi.CapacityRange{RequiredBytes: target.Value()},
		Secrets: secrets, VolumeCapability: capability,
	})
	if err != nil {
		return target, false, err
	}
	if answer.GetCapacityBytes() < target.Value() {
		return target, false, fmt.Errorf("expand volume %q: CSI driver %q says that it has %d bytes now, fewer than the %d asked for",
			volume.Name, r.Description.Name, answer.GetCapacityBytes(), target.Value())
	}
	return *resource.NewQuantity(answer.GetCapacityBytes(), resource.BinarySI), answer.GetNodeExpansionRequired(), nil
}

// growsOnNode is the error of a driver that cannot make volumes larger at all.
func (r *resizer) growsOnNode(ctx context.Context) error {
	answer, err := r.Driver.Node().NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil && driver.CodeOf(err) != codes.Unimplemented {
		return err
	}
	for _, capability := range answer.GetCapabilities() {
		if capability.GetRpc().GetType() == csi.NodeServiceCapability_RPC_EXPAND_VOLUME {
			return nil
		}
	}
	return &driver.Error{Driver: r.Description.Name, Method: "ControllerExpandVolume", Code: codes.Unimplemented, Message: "the driver cannot make volumes larger"}
}

// record writes the size into the PersistentVolume.
func (r *resizer) record(ctx context.Context, volume *corev1.PersistentVolume, size resource.Quantity) error {
	if have := volume.Spec.Capacity[corev1.ResourceStorage]; have.Cmp(size) >= 0 {
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
		return fmt.Errorf("write size of PersistentVolume %q: %w", volume.Name, err)
	}
	return nil
}

// finish tells the claim what it has, or leaves the rest to kubelet.
func (r *resizer) finish(ctx context.Context, claim *corev1.PersistentVolumeClaim, size resource.Quantity, onNode bool) error {
	if onNode {
		setState(claim, corev1.PersistentVolumeClaimNodeResizePending)
		setCondition(claim, corev1.PersistentVolumeClaimFileSystemResizePending, "", "The node makes the file system larger when a pod uses the volume.")
	} else {
		if claim.Status.Capacity == nil {
			claim.Status.Capacity = corev1.ResourceList{}
		}
		claim.Status.Capacity[corev1.ResourceStorage] = size
		setState(claim, "")
		setCondition(claim, "", "", "")
	}
	claim, err := r.write(ctx, claim)
	if err != nil {
		return err
	}
	if onNode {
		r.Events.Eventf(claim, corev1.EventTypeNormal, "FileSystemResizeRequired", "The volume has %s; the node has yet to follow.", size.String())
	} else {
		r.Events.Eventf(claim, corev1.EventTypeNormal, "VolumeResizeSuccessful", "The volume has %s.", size.String())
	}
	return nil
}

// failed tells the claim's user, and, when the driver has surely done nothing, that less may be asked for.
func (r *resizer) failed(ctx context.Context, claim *corev1.PersistentVolumeClaim, cause error) error {
	state := stateOf(claim)
	if driver.Certain(cause) && driver.CodeOf(cause) != codes.FailedPrecondition { // that one is for volumes in use
		setState(claim, corev1.PersistentVolumeClaimControllerResizeInfeasible)
	}
	told := setCondition(claim, corev1.PersistentVolumeClaimControllerResizeError, "", cause.Error())
	if state == stateOf(claim) && !told {
		return cause
	}
	if _, err := r.write(ctx, claim); err != nil {
		return fmt.Errorf("%w; %w", cause, err)
	}
	r.Events.Event(claim, corev1.EventTypeWarning, "VolumeResizeFailed", cause.Error())
	return cause
}
