package podcost

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
)

// maxWatched is the maximum number of different secrets and ConfigMaps of a pod. The kubelet
// watches each of them, even those that do not exist, and starts at most 50 watches a second for
// all pods.
const maxWatched = 128

// references holds the names of the secrets and ConfigMaps that a pod refers to.
type references struct{ secrets, configMaps map[string]bool }

// checkWatched rejects a pod that refers to too many secrets and ConfigMaps. Ephemeral containers
// can be added to an existing pod that exceeds the limit, unless they refer to additional secrets
// or ConfigMaps.
func checkWatched(a admission.Attributes, pod *corev1.Pod) error {
	old, existed := a.GetOldObject().(*corev1.Pod)
	if number := watchedOf(&pod.Spec); number > maxWatched && !(existed && number <= watchedOf(&old.Spec)) {
		return admission.NewForbidden(a, fmt.Errorf("the pod refers to %d different secrets and ConfigMaps, but the limit is %d; combine them, or use several pods", number, maxWatched))
	}
	return nil
}

// watchedOf returns the number of distinct secrets and ConfigMaps that a pod refers to in
// environment variables, volumes and pull secrets. It does not count the secrets of storage
// drivers, because each volume has at most one.
func watchedOf(spec *corev1.PodSpec) int {
	r := references{map[string]bool{}, map[string]bool{}}
	for _, secret := range spec.ImagePullSecrets {
		r.secrets[secret.Name] = true
	}
	for _, container := range containersOf(spec) {
		r.addVariables(container)
	}
	for i := range spec.Volumes {
		r.addVolume(&spec.Volumes[i])
	}
	return len(r.secrets) + len(r.configMaps)
}

func (r references) addVariables(container corev1.Container) {
	for _, source := range container.EnvFrom {
		if source.SecretRef != nil {
			r.secrets[source.SecretRef.Name] = true
		}
		if source.ConfigMapRef != nil {
			r.configMaps[source.ConfigMapRef.Name] = true
		}
	}
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			continue
		}
		if reference := variable.ValueFrom.SecretKeyRef; reference != nil {
			r.secrets[reference.Name] = true
		}
		if reference := variable.ValueFrom.ConfigMapKeyRef; reference != nil {
			r.configMaps[reference.Name] = true
		}
	}
}

func (r references) addVolume(volume *corev1.Volume) {
	switch {
	case volume.Secret != nil:
		r.secrets[volume.Secret.SecretName] = true
	case volume.ConfigMap != nil:
		r.configMaps[volume.ConfigMap.Name] = true
	case volume.Projected != nil:
		for _, source := range volume.Projected.Sources {
			if source.Secret != nil {
				r.secrets[source.Secret.Name] = true
			}
			if source.ConfigMap != nil {
				r.configMaps[source.ConfigMap.Name] = true
			}
		}
	}
}
