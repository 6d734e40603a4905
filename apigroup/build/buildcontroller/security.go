package buildcontroller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/buildpod"
)

// secure sets the security context of a build's containers. They run in a user namespace, so root
// in the container has no privileges on the node. A builder mounts file systems and starts
// containers. This requires SYS_ADMIN, an unmasked /proc, and a seccomp profile that allows more
// than the default profile. Build steps use the default profile. Slipway's builder also has
// NET_ADMIN for the pod's network: the builder blocks its steps' access to link-local addresses,
// and then drops the capability. No builder has NET_RAW, because raw frames would bypass this
// block.
func (m *podFactory) secure(pod *corev1.PodSpec, custom bool) {
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
		Capabilities:   &corev1.Capabilities{Add: capabilities, Drop: []corev1.Capability{"NET_RAW"}},
		ProcMount:      ptr.To(corev1.UnmaskedProcMount),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &m.SeccompProfile},
	}
}

// confiner returns the init container that blocks link-local addresses for a custom builder. The
// init container runs Slipway's builder with NET_ADMIN. A custom builder itself never has
// NET_ADMIN.
func (m *podFactory) confiner(resources corev1.ResourceRequirements) corev1.Container {
	return corev1.Container{
		Name: "manage-network", Image: m.Image, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{buildpod.ConfineArgument}, Resources: resources,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			Privileged:     ptr.To(false),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}
