package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/slipway-platform/slipway/apigroup/settings/v1alpha1"
)

// maxAdded is the maximum number of elements that presets add to all containers of a pod.
// maxAddedBytes is their maximum size in JSON. Requests have similar limits: 3 MiB and 20,000
// values. An environment variable counts as three values.
const maxAdded, maxAddedBytes = 6_000, 3 << 20

// presetElements is the number of elements that checkSize adds for each preset and container, to
// account for the cost of merging each preset separately.
const presetElements = 30

// checkSize rejects presets that would make a pod much larger than a request can be, because each
// container gets a copy of their elements.
func checkSize(pod *corev1.Pod, presets []v1alpha1.PodPreset) error {
	containers := len(pod.Spec.Containers)
	elements, size := 0, 0
	for i := range presets {
		spec := &presets[i].Spec
		data, err := json.Marshal([]any{spec.Env, spec.EnvFrom, spec.VolumeMounts})
		if err != nil {
			return fmt.Errorf("encode pod preset %q: %w", presets[i].Name, err)
		}
		elements += len(spec.Volumes) + containers*(presetElements+len(spec.Env)+len(spec.EnvFrom)+len(spec.VolumeMounts))
		size += containers * len(data)
		if elements > maxAdded || size > maxAddedBytes {
			return fmt.Errorf("pod presets cannot add more than %d elements or %d bytes to a pod", maxAdded, maxAddedBytes)
		}
	}
	return nil
}

// apply adds presets to a pod and to each of its containers, except init containers. If there are
// conflicts, it returns all conflicts and leaves the pod unchanged.
func apply(pod *corev1.Pod, presets []v1alpha1.PodPreset) error {
	if err := checkSize(pod, presets); err != nil {
		return err
	}
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

// merge appends the values whose keys do not exist yet. It returns an error if a key exists with a
// different value.
func merge[T any](existing, added []T, key func(T) string) ([]T, error) {
	merged := slices.Clip(existing)
	positions := map[string]int{} // index of the first value with each key
	for i, value := range slices.Backward(merged) {
		positions[key(value)] = i
	}
	for _, value := range added {
		i, exists := positions[key(value)]
		switch {
		case !exists:
			positions[key(value)] = len(merged)
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
