package settings

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/slipway-platform/slipway/apigroup/settings/v1alpha1"
)

// apply adds presets to a pod and to each of its containers, except init containers. If there are
// conflicts, it returns all conflicts and leaves the pod unchanged.
func apply(pod *corev1.Pod, presets []v1alpha1.PodPreset) error {
	spec := pod.Spec.DeepCopy()
	var conflicts []error
	for i := range presets {
		preset := &presets[i]
		part := preset.Spec.DeepCopy()
		var err error
		spec.Volumes, err = merge(spec.Volumes, part.Volumes, func(v corev1.Volume) string { return v.Name })
		conflicts = append(conflicts, conflict(preset, "volume", "", err))
		for j := range spec.Containers {
			container := &spec.Containers[j]
			container.Env, err = merge(container.Env, part.Env, func(v corev1.EnvVar) string { return v.Name })
			conflicts = append(conflicts, conflict(preset, "environment variable", container.Name, err))
			container.VolumeMounts, err = merge(container.VolumeMounts, part.VolumeMounts, func(m corev1.VolumeMount) string { return m.MountPath })
			conflicts = append(conflicts, conflict(preset, "mount", container.Name, err))
			container.EnvFrom = append(container.EnvFrom, part.EnvFrom...)
		}
	}
	if err := errors.Join(conflicts...); err != nil {
		return err
	}
	pod.Spec = *spec
	return nil
}

// merge appends the values whose key does not exist yet. It returns an error if the key exists with
// a different value.
func merge[T any](existing, added []T, key func(T) string) ([]T, error) {
	merged := slices.Clip(existing)
	for _, value := range added {
		i := slices.IndexFunc(merged, func(other T) bool { return key(other) == key(value) })
		switch {
		case i < 0:
			merged = append(merged, value)
		case !equality.Semantic.DeepEqual(merged[i], value):
			return existing, fmt.Errorf("%q exists with another value", key(value))
		}
	}
	return merged, nil
}

func conflict(preset *v1alpha1.PodPreset, part, container string, err error) error {
	switch {
	case err == nil:
		return nil
	case container == "":
		return fmt.Errorf("add %s of pod preset %q: %w", part, preset.Name, err)
	}
	return fmt.Errorf("add %s of pod preset %q to container %q: %w", part, preset.Name, container, err)
}
