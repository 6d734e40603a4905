package building

import (
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// securityContext is what the container of a build may do on its node.
func securityContext(*buildv1.BuildStrategy) *corev1.SecurityContext {
	return &corev1.SecurityContext{Privileged: ptr.To(true)}
}
