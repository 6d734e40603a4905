package podcost

import corev1 "k8s.io/api/core/v1"

// maxMounts is the maximum number of mounts that a pod can require on its node. By default, the
// kernel allows 100,000 mounts per mount namespace (fs.mount-max). When the node reaches that
// number, it cannot start any more pods. Long before that, pods start slowly, because the kubelet
// and containerd read the whole mount list for each pod. A node has at most 250 pods by default,
// and the sandbox of each pod requires further mounts.
const maxMounts = 380

// mountsOf returns the number of mounts that a pod requires on its node: one for each container's
// root file system, each volume, and each subPath that a container mounts. A container's other
// mounts exist only in its own mount namespace.
func mountsOf(spec *corev1.PodSpec) int {
	number := len(spec.Volumes)
	for _, container := range containersOf(spec) {
		number++
		for i := range container.VolumeMounts {
			if mount := &container.VolumeMounts[i]; mount.SubPath != "" || mount.SubPathExpr != "" {
				number++
			}
		}
	}
	return number
}
