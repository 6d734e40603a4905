// Package mirrorpod recognizes mirror pods, which represent a node's static pods in the API.
package mirrorpod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// userOfNode is the username prefix of nodes.
const userOfNode = "system:node:"

// Is reports whether a pod in a user's request is a mirror pod. Admission plugins exempt mirror
// pods, because the kubelet already runs them. All users can set the annotation of mirror pods, so
// the user must be the pod's node.
func Is(pod *corev1.Pod, requester user.Info) bool {
	_, annotated := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return annotated && requester != nil && pod.Spec.NodeName != "" &&
		requester.GetName() == userOfNode+pod.Spec.NodeName && slices.Contains(requester.GetGroups(), user.NodesGroup)
}
