package buildcontroller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// secure says what the containers of a build may do on its node: nothing. Their users are not the node's, so that their root is nobody there, and what it may as
// root ends at its own namespaces. In them a builder mounts file systems and starts the containers of its steps, which takes SYS_ADMIN, a /proc of which
// nothing is hidden, and a filter of system calls that allows more than the usual one; the steps have that one. NET_ADMIN, over the pod's own network, is for our
// builder, which closes some addresses to its steps and gives it up.
func (m *maker) secure(pod *corev1.PodSpec, custom bool) {
	pod.HostUsers = ptr.To(false)
	container := &pod.Containers[0]
	capabilities := []corev1.Capability{"SYS_ADMIN"}
	if custom {
		pod.InitContainers = append(pod.InitContainers, m.confiner(container.Resources))
	} else {
		capabilities = append(capabilities, "NET_ADMIN")
	}
	container.SecurityContext = &corev1.SecurityContext{
		Privileged:     ptr.To(false),
		Capabilities:   &corev1.Capabilities{Add: capabilities},
		ProcMount:      ptr.To(corev1.UnmaskedProcMount),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &m.SeccompProfile},
	}
}

// confiner is the container that closes addresses to a custom builder before that starts: our builder, with the right over the pod's network, which a custom one never has.
func (m *maker) confiner(resources corev1.ResourceRequirements) corev1.Container {
	return corev1.Container{
		Name: "manage-network", Image: m.Image, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"confine"}, Resources: resources,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			Privileged:     ptr.To(false),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}
