package resize

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setState notes how far the resize is; empty is not at all.
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

// ours are the conditions of a resize, of which a claim has one at a time.
func ours(c corev1.PersistentVolumeClaimCondition) bool {
	switch c.Type {
	case corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
		corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError:
		return true
	}
	return false
}

// setCondition lets a claim have one condition of a resize, or none, and tells whether that is news.
func setCondition(claim *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType, reason, message string) (news bool) {
	same := func(c corev1.PersistentVolumeClaimCondition) bool { return c.Type == kind && c.Message == message }
	if kind != "" && slices.ContainsFunc(claim.Status.Conditions, same) {
		return false
	}
	claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, ours)
	if kind != "" {
		claim.Status.Conditions = append(claim.Status.Conditions, corev1.PersistentVolumeClaimCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: reason, Message: message,
		})
	}
	return true
}

// write fails with a conflict when the claim has changed meanwhile.
func (r *resizer) write(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	written, err := r.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("write status of PersistentVolumeClaim \"%s/%s\": %w", claim.Namespace, claim.Name, err)
	}
	return written, nil
}
