package image

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	kubeappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/internal/mirrorpod"
)

// usage is one use of an image: by a container, as a build's base image, or as an image source.
type usage struct {
	key   string                 // unique within the object
	field string                 // path in the object
	image corev1.ObjectReference // has the kind DockerImage for containers
	set   func(image string)     // sets the image in the object
}

// each calls visit for each image that a request adds to an object. It skips mirror pods, because
// the kubelet already runs them.
func (p *policy) each(a admission.Attributes, visit func(u usage, annotations map[string]string) error) error {
	if sub := a.GetSubresource(); sub != "" && sub != "ephemeralcontainers" {
		return nil
	}
	all, annotations := usages(a.GetObject())
	if pod, ok := a.GetObject().(*corev1.Pod); ok && mirrorpod.Is(pod, a.GetUserInfo()) {
		return nil
	}
	before, _ := usages(a.GetOldObject())
	for _, u := range all {
		if slices.ContainsFunc(before, func(old usage) bool { return old.key == u.key && old.image == u.image }) {
			continue
		}
		if err := visit(u, annotations); err != nil {
			return err
		}
	}
	return nil
}

// usages returns an object's image uses and its annotations.
func usages(object runtime.Object) (all []usage, annotations map[string]string) {
	if build, ok := object.(*buildv1.Build); ok {
		return buildImages(&build.Spec.CommonSpec), build.Annotations
	}
	spec, annotations := podSpec(object)
	if spec == nil {
		return nil, nil
	}
	fields := containerFields(object, spec)
	for i, container := range containers(spec) {
		all = append(all, usage{
			container.Name, fields[i], corev1.ObjectReference{Kind: dockerKind, Name: container.Image}, func(image string) { container.Image = image },
		})
	}
	return all, annotations
}

// containerFields returns the field path of each container's image, in the order of containers.
func containerFields(object runtime.Object, spec *corev1.PodSpec) (paths []string) {
	prefix := "spec.template.spec."
	switch object.(type) {
	case *corev1.Pod:
		prefix = "spec."
	case *batchv1.CronJob:
		prefix = "spec.jobTemplate.spec.template.spec."
	}
	for _, list := range []struct {
		name  string
		count int
	}{{"initContainers", len(spec.InitContainers)}, {"containers", len(spec.Containers)}, {"ephemeralContainers", len(spec.EphemeralContainers)}} {
		for i := range list.count {
			paths = append(paths, fmt.Sprintf("%s%s[%d].image", prefix, list.name, i))
		}
	}
	return paths
}

// buildImages returns the images that a build specifies, as in OpenShift 3: its strategy's image
// and its image sources. It does not return the images in a Dockerfile, which only the builder
// reads.
func buildImages(spec *buildv1.CommonSpec) (all []usage) {
	add := func(key, field string, from *corev1.ObjectReference) {
		all = append(all, usage{key, "spec." + field + ".from", *from, func(image string) { *from = corev1.ObjectReference{Kind: dockerKind, Name: image} }})
	}
	if docker := spec.Strategy.DockerStrategy; docker != nil && docker.From != nil {
		add("strategy", "strategy.dockerStrategy", docker.From)
	}
	if source := spec.Strategy.SourceStrategy; source != nil {
		add("strategy", "strategy.sourceStrategy", &source.From)
	}
	if custom := spec.Strategy.CustomStrategy; custom != nil {
		add("strategy", "strategy.customStrategy", &custom.From)
	}
	for i := range spec.Source.Images {
		add("source "+strconv.Itoa(i), fmt.Sprintf("source.images[%d]", i), &spec.Source.Images[i].From)
	}
	return all
}

// containers returns all containers of a pod, including init and ephemeral containers. The
// container names are unique.
func containers(spec *corev1.PodSpec) (all []*corev1.Container) {
	for i := range spec.InitContainers {
		all = append(all, &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		all = append(all, &spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		all = append(all, (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return all
}

// podSpec returns the spec of a pod or of a workload's pod template, and the object's annotations.
func podSpec(object runtime.Object) (*corev1.PodSpec, map[string]string) {
	switch o := object.(type) {
	case *corev1.Pod:
		return &o.Spec, o.Annotations
	case *corev1.ReplicationController:
		return templateSpec(o.Spec.Template), o.Annotations
	case *appsv1.DeploymentConfig:
		return templateSpec(o.Spec.Template), o.Annotations
	case *kubeappsv1.Deployment:
		return &o.Spec.Template.Spec, o.Annotations
	case *kubeappsv1.ReplicaSet:
		return &o.Spec.Template.Spec, o.Annotations
	case *kubeappsv1.StatefulSet:
		return &o.Spec.Template.Spec, o.Annotations
	case *kubeappsv1.DaemonSet:
		return &o.Spec.Template.Spec, o.Annotations
	case *batchv1.Job:
		return &o.Spec.Template.Spec, o.Annotations
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template.Spec, o.Annotations
	}
	return nil, nil
}

func templateSpec(template *corev1.PodTemplateSpec) *corev1.PodSpec {
	if template == nil {
		return nil
	}
	return &template.Spec
}
