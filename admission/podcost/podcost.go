// Package podcost limits the memory that a pod requires in the kubelet and the mounts that it
// requires on its node. The pod's own resource limits cover neither of them.
//
// The kubelet replaces references such as $(NAME) with the values of environment variables, which
// can contain references themselves. If each variable refers to the previous variable twice, forty
// variables expand to a terabyte. The kubelet does not limit the expansion, although no program
// starts with more than a few megabytes of environment variables.
//
// The kubelet also writes a secret to memory once for each reference in the pod's volumes, and
// lists all pods and containers on the node once a second. It watches each secret and ConfigMap.
package podcost

import (
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
)

// Name is the name of the admission plugin in messages.
const Name = "slipway.io/PodCost"

const (
	// maxSize is the maximum size, in bytes, of the text that the kubelet expands for a pod.
	maxSize = 8 << 20
	// foreignSize is the assumed size, in bytes, of a value that the pod does not contain, such as a
	// value in a secret. It is a high estimate: typical values are much smaller, but some have up to
	// 1 MiB.
	foreignSize = 16 << 10
	// maxCopies is the maximum number of secrets, ConfigMaps and individual keys that the kubelet
	// writes for a pod. Each of them can be up to 1 MiB.
	maxCopies = 128
)

// Expand replaces each reference in text with the result of value, as the kubelet does.
type Expand func(text string, value func(name string) string) string

// Feature returns the feature that adds the admission plugin to the API server.
func Feature(expand Expand) apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(io.Reader) (admission.Interface, error) {
			return plugin{admission.NewHandler(admission.Create, admission.Update), expand}, nil
		},
	}}}
}

type plugin struct {
	*admission.Handler
	expand Expand
}

var _ admission.ValidationInterface = plugin{}

// Validate rejects a new pod, an additional container, or a metadata change that exceeds a limit.
func (p plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || a.GetResource().GroupResource() != corev1.Resource("pods") {
		return nil
	}
	isNew := a.GetOperation() == admission.Create && a.GetSubresource() == ""
	switch subresource := a.GetSubresource(); {
	case isNew, subresource == "ephemeralcontainers":
	case subresource == "":
		return checkListed(a, pod)
	default:
		return nil
	}
	if p.sizeOf(&pod.Spec) > maxSize {
		return admission.NewForbidden(a, fmt.Errorf("the variables, commands and arguments of the pod could expand to more than %d MiB: use fewer references such as $(NAME)", maxSize>>20))
	}
	if number := copiesOf(&pod.Spec); isNew && number > maxCopies {
		return admission.NewForbidden(a, fmt.Errorf("the volumes of the pod contain %d secrets, ConfigMaps and items, but the limit is %d; list fewer items, or omit items to mount all keys", number, maxCopies))
	}
	if err := checkWatched(a, pod); err != nil {
		return err
	}
	if number := mountsOf(&pod.Spec); number > maxMounts {
		return admission.NewForbidden(a, fmt.Errorf("the pod has %d containers, volumes and mounts with subPath, but the limit is %d; use several pods", number, maxMounts))
	}
	return checkListed(a, pod)
}

// containersOf returns all containers of a pod, including init and ephemeral containers.
func containersOf(spec *corev1.PodSpec) []corev1.Container {
	containers := slices.Concat(spec.InitContainers, spec.Containers)
	for i := range spec.EphemeralContainers {
		containers = append(containers, corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return containers
}

// copiesOf returns the number of secrets and ConfigMaps that the kubelet writes to a pod's volumes.
// For a source with items, it counts the items instead.
func copiesOf(spec *corev1.PodSpec) (number int) {
	count := func(items []corev1.KeyToPath) { number += max(1, len(items)) }
	for i := range spec.Volumes {
		switch volume := &spec.Volumes[i]; {
		case volume.Secret != nil:
			count(volume.Secret.Items)
		case volume.ConfigMap != nil:
			count(volume.ConfigMap.Items)
		case volume.DownwardAPI != nil:
			number += len(volume.DownwardAPI.Items)
		case volume.Projected != nil:
			for _, source := range volume.Projected.Sources {
				switch {
				case source.Secret != nil:
					count(source.Secret.Items)
				case source.ConfigMap != nil:
					count(source.ConfigMap.Items)
				case source.DownwardAPI != nil:
					number += len(source.DownwardAPI.Items)
				default:
					number++
				}
			}
		}
	}
	return number
}

// sizeOf returns the size of the text that the kubelet expands for a pod. If the size exceeds
// maxSize, the result can be any number greater than maxSize.
func (p plugin) sizeOf(spec *corev1.PodSpec) (size int) {
	containers := containersOf(spec)
	for i := range containers {
		if size += p.sizeOfContainer(&containers[i]); size > maxSize {
			break
		}
	}
	return size
}

func (p plugin) sizeOfContainer(container *corev1.Container) (size int) {
	v := variables{expand: p.expand, sizes: map[string]int{}}
	if len(container.EnvFrom) > 0 {
		v.unknown = foreignSize
	}
	for _, variable := range container.Env {
		if variable.ValueFrom != nil {
			v.sizes[variable.Name] = foreignSize
			continue
		}
		v.sizes[variable.Name] = v.sizeOf(variable.Value)
		if size += v.sizes[variable.Name]; size > maxSize {
			return size // stop before the sum overflows
		}
	}
	texts := slices.Concat(container.Command, container.Args)
	for _, mount := range container.VolumeMounts {
		texts = append(texts, mount.SubPathExpr)
	}
	for _, text := range texts {
		if size += v.sizeOf(text); size > maxSize {
			return size
		}
	}
	return size
}

// variables holds the sizes of a container's environment variables.
type variables struct {
	expand Expand
	sizes  map[string]int
	// unknown is the assumed size of environment variables that are not in sizes, if the
	// container's envFrom sources can define them.
	unknown int
}

// sizeOf returns the size that text has after its references have been replaced.
func (v variables) sizeOf(text string) int {
	replaced := 0
	rest := v.expand(text, func(name string) string {
		size, ok := v.sizes[name]
		if !ok {
			size = max(v.unknown, len(name))
		}
		replaced += size
		return ""
	})
	return replaced + len(rest)
}
