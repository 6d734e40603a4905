package podcost

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
)

const (
	// maxListed is the maximum size, in bytes, of the entries for a pod in the lists that
	// containerd returns. The limit applies separately to the entry of the pod's sandbox and to the
	// sum of its containers' entries. The kubelet lists all sandboxes and containers once a second
	// and accepts a list of at most 16 MiB. If the list is larger, the node becomes not ready and
	// all of its pods are evicted. A node has at most 250 pods by default, and containerd's list
	// can also contain a previous instance of each container.
	maxListed = 32 << 10
	// listedContainer is the size, in bytes, of a container's entry in containerd's list, excluding
	// the parts that the pod's author controls.
	listedContainer = 1 << 10
)

// checkListed rejects a pod whose entries in containerd's lists are too large. A pod that already
// exceeds the limit can be updated if its entries do not grow.
func checkListed(a admission.Attributes, pod *corev1.Pod) error {
	old, existed := a.GetOldObject().(*corev1.Pod)
	if size := listedSandbox(pod); size > maxListed && !(existed && size <= listedSandbox(old)) {
		return admission.NewForbidden(a, fmt.Errorf("the labels and annotations of the pod have %d bytes, but the limit is %d; move data to a ConfigMap", size, maxListed))
	}
	if size := listedContainers(&pod.Spec); size > maxListed && !(existed && size <= listedContainers(&old.Spec)) {
		return admission.NewForbidden(a, fmt.Errorf("the ports, preStop hooks, images and paths of the pod's %d containers count as %d bytes, including %d for each container, "+
			"but the limit is %d; use several pods, or move scripts to images or ConfigMaps", len(containersOf(&pod.Spec)), size, listedContainer, maxListed))
	}
	return nil
}

// listedSandbox returns the size of a pod's labels and annotations.
func listedSandbox(pod *corev1.Pod) (size int) {
	for _, list := range []map[string]string{pod.Labels, pod.Annotations} {
		for key, value := range list {
			size += len(key) + len(value)
		}
	}
	return size
}

// listedContainers returns the total size of the entries for a pod's containers. An entry includes
// the annotations that the kubelet uses to store data about the container.
func listedContainers(spec *corev1.PodSpec) (size int) {
	encoded := func(value any) int {
		text, err := json.Marshal(value)
		if err != nil {
			return 0 // the kubelet also omits a container that it cannot encode
		}
		return len(text)
	}
	for _, container := range containersOf(spec) {
		size += listedContainer + len(container.Image) + len(container.TerminationMessagePath)
		if len(container.Ports) > 0 {
			size += encoded(container.Ports)
		}
		if container.Lifecycle != nil && container.Lifecycle.PreStop != nil {
			size += encoded(container.Lifecycle.PreStop)
		}
	}
	return size
}
