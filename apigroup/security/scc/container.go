package scc

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// container holds the parts of a container that constraints check, for containers of any type.
type container struct {
	// list and index locate the container. list is initContainers, containers or
	// ephemeralContainers.
	list    string
	index   int
	context **corev1.SecurityContext
	ports   []corev1.ContainerPort
	hosts   []namedHost
}

// namedHost is a host that the kubelet connects to on behalf of a container.
type namedHost struct {
	// field is the field path in the container, such as livenessProbe.httpGet.
	field []string
	name  string
}

// at returns the container's field path, given the path of the pod's spec.
func (c container) at(spec *field.Path) *field.Path { return spec.Child(c.list).Index(c.index) }

// eachContainer calls visit for all init containers, containers and ephemeral containers.
func eachContainer(spec *corev1.PodSpec, visit func(container)) {
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		visit(container{"initContainers", i, &c.SecurityContext, c.Ports, hosts(c)})
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		visit(container{"containers", i, &c.SecurityContext, c.Ports, hosts(c)})
	}
	for i := range spec.EphemeralContainers {
		c := &spec.EphemeralContainers[i]
		common := corev1.Container(c.EphemeralContainerCommon)
		visit(container{"ephemeralContainers", i, &c.SecurityContext, c.Ports, hosts(&common)})
	}
}

// hosts returns the hosts in a container's probes and hooks.
func hosts(c *corev1.Container) (hosts []namedHost) {
	add := func(get *corev1.HTTPGetAction, socket *corev1.TCPSocketAction, at ...string) {
		if get != nil && get.Host != "" {
			hosts = append(hosts, namedHost{append(slices.Clone(at), "httpGet"), get.Host})
		}
		if socket != nil && socket.Host != "" {
			hosts = append(hosts, namedHost{append(slices.Clone(at), "tcpSocket"), socket.Host})
		}
	}
	for _, probe := range []struct {
		field string
		*corev1.Probe
	}{{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe}} {
		if probe.Probe != nil {
			add(probe.HTTPGet, probe.TCPSocket, probe.field)
		}
	}
	if c.Lifecycle == nil {
		return hosts
	}
	for _, hook := range []struct {
		field string
		*corev1.LifecycleHandler
	}{{"postStart", c.Lifecycle.PostStart}, {"preStop", c.Lifecycle.PreStop}} {
		if hook.LifecycleHandler != nil {
			add(hook.HTTPGet, hook.TCPSocket, "lifecycle", hook.field)
		}
	}
	return hosts
}
