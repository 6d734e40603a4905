package resize

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setState sets the resize state. An empty state means that no resize is in progress.
func setState(claim *corev1.PersistentVolumeClaim, state corev1.ClaimResourceStatus) {
	if state == "" {
		delete(claim.Status.AllocatedResourceStatuses, corev1.ResourceStorage)
		return
	}
	if claim.Status.AllocatedResourceStatuses == nil {
		claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{}
	}
	claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] = state
}

// isResizeCondition reports whether a condition describes a resize. A claim has at most one such
// condition.
func isResizeCondition(c corev1.PersistentVolumeClaimCondition) bool {
	switch c.Type {
	case corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
		corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError:
		return true
	}
	return false
}

// setCondition sets the claim's resize condition, or removes the condition if kind is empty. It
// reports whether the condition has changed.
func setCondition(claim *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType, reason, message string) (changed bool) {
	matches := func(c corev1.PersistentVolumeClaimCondition) bool { return c.Type == kind && c.Message == message }
	if kind != "" && slices.ContainsFunc(claim.Status.Conditions, matches) {
		return false
	}
	claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, isResizeCondition)
	if kind != "" {
		claim.Status.Conditions = append(claim.Status.Conditions, corev1.PersistentVolumeClaimCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: reason, Message: message,
		})
	}
	return true
}

// updateStatus updates the claim's status. It fails with a conflict if the claim has changed.
func (r *resizer) updateStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	updated, err := r.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("update status of PersistentVolumeClaim \"%s/%s\": %w", claim.Namespace, claim.Name, err)
	}
	return updated, nil
}
