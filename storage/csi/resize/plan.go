package resize

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// sizes returns a claim's requested size and current size.
func sizes(claim *corev1.PersistentVolumeClaim) (requested, current resource.Quantity) {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
}

func stateOf(claim *corev1.PersistentVolumeClaim) corev1.ClaimResourceStatus {
	return claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
}

// plan returns the size to which a claim's volume must be expanded now, if any.
//
// A size that was requested from the driver remains the target until the outcome is known, because
// it counts toward quota and the volume might already have this size. If the driver has rejected
// the size, or if only the kubelet must continue the expansion, the target is the currently
// requested size, even if it is smaller.
func plan(claim *corev1.PersistentVolumeClaim) (target resource.Quantity, ok bool) {
	requested, current := sizes(claim)
	allocated := claim.Status.AllocatedResources[corev1.ResourceStorage]
	switch stateOf(claim) {
	case corev1.PersistentVolumeClaimControllerResizeInProgress:
		return allocated, true
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, "":
		return requested, requested.Cmp(current) > 0
	case corev1.PersistentVolumeClaimNodeResizePending:
		return requested, requested.Cmp(allocated) > 0
	case corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return requested, requested.Cmp(allocated) != 0
	default: // the kubelet is expanding the volume, or the state is from a newer Kubernetes
		return requested, false
	}
}
