package building

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// secure says what the container of a build may do on its node: nothing. Its users are not the node's, so that its root is nobody there, and what it may as
// root ends at its own namespaces. In them it mounts file systems and starts the containers of its steps, which takes SYS_ADMIN, a /proc of which
// nothing is hidden, and system calls that the usual filter forbids; the steps have that filter again. NET_ADMIN, over the pod's own network, is for our builder, which
// closes some addresses to its steps and gives it up; a custom one has no use for it.
func secure(pod *corev1.PodSpec, custom bool) {
	capabilities := []corev1.Capability{"SYS_ADMIN"}
	if !custom {
		capabilities = append(capabilities, "NET_ADMIN")
	}
	pod.HostUsers = ptr.To(false)
	pod.Containers[0].SecurityContext = &corev1.SecurityContext{
		Privileged:     ptr.To(false),
		Capabilities:   &corev1.Capabilities{Add: capabilities},
		ProcMount:      ptr.To(corev1.UnmaskedProcMount),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
	}
}
