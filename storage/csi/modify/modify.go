// Package modify changes the parameters of volumes of a CSI driver as the VolumeAttributesClass of their claims asks for it (KEP-3751):
// the class goes from the claim's spec to status.modifyVolumeStatus, to the driver, to the PersistentVolume and to
// status.currentVolumeAttributesClassName.
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

// Options are what an administrator may choose.
type Options struct {
	// Workers is how many volumes are changed at once; 0 means 10.
	Workers int
	// Retry is the delay after the first error, which doubles up to RetryMax; 0 means 1 second and 5 minutes.
	Retry, RetryMax time.Duration
}

// modifier serves the volumes of one driver.
type modifier struct {
	*session.Session
	claims  corelisters.PersistentVolumeClaimLister
	classes storagelisters.VolumeAttributesClassLister
}

// Feature makes the loop of a driver that can change volumes.
func Feature(options Options) session.Feature {
	return func(s *session.Session) ([]controller.Loop, error) {
		if !s.Description.Can(csi.ControllerServiceCapability_RPC_MODIFY_VOLUME) {
			return nil, nil
		}
		core, classes := s.Informers.Core().V1(), s.Informers.Storage().V1().VolumeAttributesClasses()
		m := &modifier{Session: s, claims: core.PersistentVolumeClaims().Lister(), classes: classes.Lister()}
		return []controller.Loop{{
			Name: "modify",
			Watches: []controller.Watch{
				{Informer: core.PersistentVolumeClaims().Informer(), Keys: claimKeys, Changed: changed},
				{Informer: classes.Informer(), Keys: m.classKeys},
			},
			Reads:     []cache.SharedIndexInformer{core.PersistentVolumes().Informer(), core.Nodes().Informer()},
			Reconcile: m.reconcile, Workers: options.Workers, Retry: options.Retry, RetryMax: options.RetryMax,
		}}, nil
	}
}

func wanted(claim *corev1.PersistentVolumeClaim) string {
	return ptr.Deref(claim.Spec.VolumeAttributesClassName, "")
}

func current(claim *corev1.PersistentVolumeClaim) string {
	return ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, "")
}

// pending tells whether a claim wants another class than it has. One that wants none is left as it is, but for what was not finished.
func pending(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimBound && (wanted(claim) != "" && wanted(claim) != current(claim) || claim.Status.ModifyVolumeStatus != nil)
}

func claimKeys(object any) []controller.Key {
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && pending(claim) {
		return []controller.Key{{Namespace: claim.Namespace, Name: claim.Name}}
	}
	return nil
}

// classKeys are the claims that wait for a class.
func (m *modifier) classKeys(object any) (keys []controller.Key) {
	class, ok := object.(*storagev1.VolumeAttributesClass)
	if !ok {
		return nil
	}
	claims, _ := m.claims.List(labels.Everything())
	for _, claim := range claims {
		if pending(claim) && wanted(claim) == class.Name {
			keys = append(keys, controller.Key{Namespace: claim.Namespace, Name: claim.Name})
		}
	}
	return keys
}

// changed leaves out what only this loop writes.
func changed(old, new any) bool {
	before, after := old.(*corev1.PersistentVolumeClaim), new.(*corev1.PersistentVolumeClaim)
	return before.UID != after.UID || before.Status.Phase != after.Status.Phase || wanted(before) != wanted(after) || current(before) != current(after)
}

func (m *modifier) reconcile(ctx context.Context, key controller.Key) error {
	claim, err := m.claims.PersistentVolumeClaims(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) || err == nil && !pending(claim) {
		return nil
	}
	if err != nil {
		return err
	}
	volume, err := m.Claimed(claim)
	if err != nil || volume == nil {
		return err
	}
	err = m.modify(ctx, claim.DeepCopy(), volume)
	if apierrors.IsConflict(err) { // the cache will soon show what was overlooked
		return controller.After(50 * time.Millisecond)
	}
	return err
}

// modify brings a volume to the class that its claim wants. The driver is asked again as often as it takes: the same parameters change
// nothing more, and another class chosen meanwhile replaces what was tried.
func (m *modifier) modify(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	target := wanted(claim)
	if target == "" {
		target = current(claim) // back to what it was
	}
	if target == "" {
		return m.finish(ctx, claim, "")
	}
	class, err := m.classes.Get(target)
	if apierrors.IsNotFound(err) {
		return m.failed(ctx, claim, target, corev1.PersistentVolumeClaimModifyVolumePending, fmt.Errorf("no VolumeAttributesClass %q", target))
	}
	if err != nil {
		return err
	}
	if class.DriverName != m.Description.Name {
		return m.failed(ctx, claim, target, corev1.PersistentVolumeClaimModifyVolumeInfeasible,
			fmt.Errorf("VolumeAttributesClass %q is for CSI driver %q, the volume of %q", target, class.DriverName, m.Description.Name))
	}
	if claim, err = m.note(ctx, claim, target, corev1.PersistentVolumeClaimModifyVolumeInProgress, corev1.PersistentVolumeClaimVolumeModifyingVolume, ""); err != nil {
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
		if driver.Certain(err) {
			state = corev1.PersistentVolumeClaimModifyVolumeInfeasible
		}
		return m.failed(ctx, claim, target, state, err)
	}
	if err := m.record(ctx, volume, target); err != nil {
		return err
	}
	return m.finish(ctx, claim, target)
}

// note writes how far the change is.
func (m *modifier) note(ctx context.Context, claim *corev1.PersistentVolumeClaim, target string, state corev1.PersistentVolumeClaimModifyVolumeStatus, condition corev1.PersistentVolumeClaimConditionType, message string) (*corev1.PersistentVolumeClaim, error) {
	now := claim.Status.ModifyVolumeStatus
	same := func(c corev1.PersistentVolumeClaimCondition) bool { return c.Type == condition && c.Message == message }
	if now != nil && now.Status == state && now.TargetVolumeAttributesClassName == target && slices.ContainsFunc(claim.Status.Conditions, same) {
		return claim, nil
	}
	claim.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: target, Status: state}
	claim.Status.Conditions = append(slices.DeleteFunc(claim.Status.Conditions, ours), corev1.PersistentVolumeClaimCondition{
		Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Message: message,
	})
	return m.write(ctx, claim)
}

func ours(c corev1.PersistentVolumeClaimCondition) bool {
	return c.Type == corev1.PersistentVolumeClaimVolumeModifyingVolume || c.Type == corev1.PersistentVolumeClaimVolumeModifyVolumeError
}

// failed tells the claim's user.
func (m *modifier) failed(ctx context.Context, claim *corev1.PersistentVolumeClaim, target string, state corev1.PersistentVolumeClaimModifyVolumeStatus, cause error) error {
	_, err := m.note(ctx, claim, target, state, corev1.PersistentVolumeClaimVolumeModifyVolumeError, cause.Error())
	m.Events.Event(claim, corev1.EventTypeWarning, "VolumeModifyFailed", cause.Error())
	return errors.Join(cause, err)
}

// record writes the class into the PersistentVolume.
func (m *modifier) record(ctx context.Context, volume *corev1.PersistentVolume, class string) error {
	if ptr.Deref(volume.Spec.VolumeAttributesClassName, "") == class {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": volume.UID}, "spec": map[string]any{"volumeAttributesClassName": class}})
	if err != nil {
		return err
	}
	if _, err = m.Client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("write class of PersistentVolume %q: %w", volume.Name, err)
	}
	return nil
}

// finish tells the claim which class it has; an empty one is none.
func (m *modifier) finish(ctx context.Context, claim *corev1.PersistentVolumeClaim, class string) error {
	claim.Status.ModifyVolumeStatus = nil
	claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, ours)
	if class != "" {
		claim.Status.CurrentVolumeAttributesClassName = &class
	}
	claim, err := m.write(ctx, claim)
	if err == nil && class != "" {
		m.Events.Eventf(claim, corev1.EventTypeNormal, "VolumeModifySuccessful", "The volume is of VolumeAttributesClass %q.", class)
	}
	return err
}

// write fails with a conflict when the claim has changed meanwhile.
func (m *modifier) write(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	written, err := m.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("write status of PersistentVolumeClaim \"%s/%s\": %w", claim.Namespace, claim.Name, err)
	}
	return written, nil
}
