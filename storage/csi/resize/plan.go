package resize

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// sizes are what a claim asks for and what it has.
func sizes(claim *corev1.PersistentVolumeClaim) (asked, have resource.Quantity) {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
}

func stateOf(claim *corev1.PersistentVolumeClaim) corev1.ClaimResourceStatus {
	return claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
}

// plan is the size to which the volume of a claim should be brought now, if to any.
//
// A size that the driver has been asked for stays the goal until the outcome is known: quota counts it, and the volume may have it.
// When the driver has refused it, or only the node has yet to follow, the goal is what the claim asks for now, be it less than before.
func plan(claim *corev1.PersistentVolumeClaim) (target resource.Quantity, ok bool) {
	asked, have := sizes(claim)
	allocated := claim.Status.AllocatedResources[corev1.ResourceStorage]
	switch stateOf(claim) {
	case corev1.PersistentVolumeClaimControllerResizeInProgress:
		return allocated, true
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, "":
		return asked, asked.Cmp(have) > 0
	case corev1.PersistentVolumeClaimNodeResizePending:
		return asked, asked.Cmp(allocated) > 0
	case corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return asked, asked.Cmp(allocated) != 0
	default: // kubelet is at it, or a newer Kubernetes
		return asked, false
	}
}
