package scc

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// container is what constraints look at in a container of any sort.
type container struct {
	// list and index are its place: initContainers, containers or ephemeralContainers.
	list    string
	index   int
	context **corev1.SecurityContext
	ports   []corev1.ContainerPort
}

// at is the container's path below that of the pod's spec.
func (c container) at(spec *field.Path) *field.Path { return spec.Child(c.list).Index(c.index) }

// eachContainer calls visit for the init containers, the containers and the ephemeral ones.
func eachContainer(spec *corev1.PodSpec, visit func(container)) {
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		visit(container{"initContainers", i, &c.SecurityContext, c.Ports})
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		visit(container{"containers", i, &c.SecurityContext, c.Ports})
	}
	for i := range spec.EphemeralContainers {
		c := &spec.EphemeralContainers[i]
		visit(container{"ephemeralContainers", i, &c.SecurityContext, c.Ports})
	}
}
