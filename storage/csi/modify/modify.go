// Package modify applies the VolumeAttributesClasses that claims request to a CSI driver's volumes
// (KEP-3751). The class is propagated from the claim's spec to status.modifyVolumeStatus, to the
// driver, to the PersistentVolume and to status.currentVolumeAttributesClassName.
package modify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/parameters"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

// Options configures the modification of volumes.
type Options struct {
	// Workers is the maximum number of volumes that are modified concurrently. The default is 10.
	Workers int
	// Retry is the backoff after the first error. The backoff doubles after each further error, up
	// to RetryMax. The defaults are 1 second and 5 minutes.
	Retry, RetryMax time.Duration
}

// modifier modifies one driver's volumes.
type modifier struct {
	*session.Session
	claims  corelisters.PersistentVolumeClaimLister
	classes storagelisters.VolumeAttributesClassLister
}

// Feature returns the controller for a driver that supports MODIFY_VOLUME.
func Feature(options Options) session.Feature {
	return func(s *session.Session) ([]controller.Controller, error) {
		if !s.Description.Can(csi.ControllerServiceCapability_RPC_MODIFY_VOLUME) {
			return nil, nil
		}
		core, classes := s.Informers.Core().V1(), s.Informers.Storage().V1().VolumeAttributesClasses()
		m := &modifier{Session: s, claims: core.PersistentVolumeClaims().Lister(), classes: classes.Lister()}
		return []controller.Controller{{
			Name: "modify",
			Watches: []controller.Watch{
				{Informer: core.PersistentVolumeClaims().Informer(), Keys: claimKeys, Changed: changed},
				{Informer: classes.Informer(), Keys: m.classKeys},
			},
			Reads:     []cache.SharedIndexInformer{core.PersistentVolumes().Informer(), core.Nodes().Informer()},
			Reconcile: m.reconcile, Workers: options.Workers, MinBackoff: options.Retry, MaxBackoff: options.RetryMax,
		}}, nil
	}
}

func desiredClass(claim *corev1.PersistentVolumeClaim) string {
	return ptr.Deref(claim.Spec.VolumeAttributesClassName, "")
}

func currentClass(claim *corev1.PersistentVolumeClaim) string {
	return ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, "")
}

// isPending reports whether a claim requests a class that differs from its current class. A claim
// that requests no class is pending only if a modification is unfinished.
func isPending(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimBound && (desiredClass(claim) != "" && desiredClass(claim) != currentClass(claim) || claim.Status.ModifyVolumeStatus != nil)
}

func claimKeys(object any) []controller.Key {
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && isPending(claim) {
		return []controller.Key{{Namespace: claim.Namespace, Name: claim.Name}}
	}
	return nil
}

// classKeys returns the keys of the pending claims that request a VolumeAttributesClass.
func (m *modifier) classKeys(object any) (keys []controller.Key) {
	class, ok := object.(*storagev1.VolumeAttributesClass)
	if !ok {
		return nil
	}
	claims, _ := m.claims.List(labels.Everything())
	for _, claim := range claims {
		if isPending(claim) && desiredClass(claim) == class.Name {
			keys = append(keys, controller.Key{Namespace: claim.Namespace, Name: claim.Name})
		}
	}
	return keys
}

// changed reports whether an update to a claim requires reconciliation. It ignores the controller's
// own writes.
func changed(old, new any) bool {
	before, after := old.(*corev1.PersistentVolumeClaim), new.(*corev1.PersistentVolumeClaim)
	return before.UID != after.UID || before.Status.Phase != after.Status.Phase || desiredClass(before) != desiredClass(after) || currentClass(before) != currentClass(after)
}

func (m *modifier) reconcile(ctx context.Context, key controller.Key) error {
	claim, err := m.claims.PersistentVolumeClaims(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) || err == nil && !isPending(claim) {
		return nil
	}
	if err != nil {
		return err
	}
	volume, err := m.BoundVolume(claim)
	if err != nil || volume == nil {
		return err
	}
	err = m.modify(ctx, claim.DeepCopy(), volume)
	if apierrors.IsConflict(err) { // the cache will soon contain the change
		return controller.RequeueAfter(50 * time.Millisecond)
	}
	return err
}

// modify applies the class that the claim requests. Calling the driver repeatedly is safe: passing
// the same parameters again has no effect, and a class that was selected in the meantime replaces
// the previous class.
func (m *modifier) modify(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	target := desiredClass(claim)
	if target == "" {
		target = currentClass(claim) // revert to the current class
	}
	if target == "" {
		return m.complete(ctx, claim, "")
	}
	class, err := m.classes.Get(target)
	if apierrors.IsNotFound(err) {
		return m.recordFailure(ctx, claim, target, corev1.PersistentVolumeClaimModifyVolumePending, fmt.Errorf("VolumeAttributesClass %q does not exist", target))
	}
	if err != nil {
		return err
	}
	if class.DriverName != m.Description.Name {
		return m.recordFailure(ctx, claim, target, corev1.PersistentVolumeClaimModifyVolumeInfeasible,
			fmt.Errorf("VolumeAttributesClass %q is for CSI driver %q, but the volume belongs to %q", target, class.DriverName, m.Description.Name))
	}
	if claim, err = m.setStatus(ctx, claim, target, corev1.PersistentVolumeClaimModifyVolumeInProgress, corev1.PersistentVolumeClaimVolumeModifyingVolume, ""); err != nil {
		return err
	}
	secrets, err := parameters.Fetch(ctx, m.Client, volume.Spec.CSI.ControllerExpandSecretRef)
	if err != nil {
		return err
	}
	_, err = m.Driver.Controller().ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{
		VolumeId: volume.Spec.CSI.VolumeHandle, MutableParameters: class.Parameters, Secrets: secrets,
	})
	if err != nil {
		state := corev1.PersistentVolumeClaimModifyVolumeInProgress
		if driver.HasNoEffect(err) {
			state = corev1.PersistentVolumeClaimModifyVolumeInfeasible
		}
		return m.recordFailure(ctx, claim, target, state, err)
	}
	if err := m.updateVolume(ctx, volume, target); err != nil {
		return err
	}
	return m.complete(ctx, claim, target)
}

// setStatus writes the modification state to the claim.
func (m *modifier) setStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim, target string, state corev1.PersistentVolumeClaimModifyVolumeStatus, condition corev1.PersistentVolumeClaimConditionType, message string) (*corev1.PersistentVolumeClaim, error) {
	modifyStatus := claim.Status.ModifyVolumeStatus
	matches := func(c corev1.PersistentVolumeClaimCondition) bool { return c.Type == condition && c.Message == message }
	if modifyStatus != nil && modifyStatus.Status == state && modifyStatus.TargetVolumeAttributesClassName == target && slices.ContainsFunc(claim.Status.Conditions, matches) {
		return claim, nil
	}
	claim.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: target, Status: state}
	claim.Status.Conditions = append(slices.DeleteFunc(claim.Status.Conditions, isModifyCondition), corev1.PersistentVolumeClaimCondition{
		Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Message: message,
	})
	return m.updateStatus(ctx, claim)
}

func isModifyCondition(c corev1.PersistentVolumeClaimCondition) bool {
	return c.Type == corev1.PersistentVolumeClaimVolumeModifyingVolume || c.Type == corev1.PersistentVolumeClaimVolumeModifyVolumeError
}

// recordFailure records an error in the claim's status and in an event.
func (m *modifier) recordFailure(ctx context.Context, claim *corev1.PersistentVolumeClaim, target string, state corev1.PersistentVolumeClaimModifyVolumeStatus, cause error) error {
	_, err := m.setStatus(ctx, claim, target, state, corev1.PersistentVolumeClaimVolumeModifyVolumeError, cause.Error())
	m.Events.Event(claim, corev1.EventTypeWarning, "VolumeModifyFailed", cause.Error())
	return errors.Join(cause, err)
}

// updateVolume writes the class to the PersistentVolume.
func (m *modifier) updateVolume(ctx context.Context, volume *corev1.PersistentVolume, class string) error {
	if ptr.Deref(volume.Spec.VolumeAttributesClassName, "") == class {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": volume.UID}, "spec": map[string]any{"volumeAttributesClassName": class}})
	if err != nil {
		return err
	}
	if _, err = m.Client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("update class of PersistentVolume %q: %w", volume.Name, err)
	}
	return nil
}

// complete writes the current class to the claim. An empty class leaves the current class
// unchanged.
func (m *modifier) complete(ctx context.Context, claim *corev1.PersistentVolumeClaim, class string) error {
	claim.Status.ModifyVolumeStatus = nil
	claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, isModifyCondition)
	if class != "" {
		claim.Status.CurrentVolumeAttributesClassName = &class
	}
	claim, err := m.updateStatus(ctx, claim)
	if err == nil && class != "" {
		m.Events.Eventf(claim, corev1.EventTypeNormal, "VolumeModifySuccessful", "VolumeAttributesClass %q was applied to the volume.", class)
	}
	return err
}

// updateStatus updates the claim's status. It fails with a conflict if the claim has changed.
func (m *modifier) updateStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	updated, err := m.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("update status of PersistentVolumeClaim \"%s/%s\": %w", claim.Namespace, claim.Name, err)
	}
	return updated, nil
}
