package podcost

import corev1 "k8s.io/api/core/v1"

// maxMounts limits the mounts that a pod needs on its node. The kernel allows 100,000 mounts on a
// host by default (fs.mount-max). At the limit, the node starts no more pods, and long before that,
// each start of a pod is slow, because the kubelet and containerd read the list of mounts. A node
// has at most 250 pods by default, each of which also has a sandbox.
const maxMounts = 380

// mountsOf returns the number of mounts that a pod needs on its node: the root of each container,
// each volume, and each part of a volume that a container mounts (subPath). Other mounts of a
// container exist only in its own mount namespace.
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
