package image

import (
	"slices"
	"strconv"

	openshiftappsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// usage is one use of an image: a container runs it, or a build begins with it or takes files from it.
type usage struct {
	key   string                 // tells it from the others of its object
	image corev1.ObjectReference // of a container the kind is DockerImage
	put   func(image string)     // puts an image with a digest in its place
}

// each visits the uses of images in what is made or changed, but for those that were there before.
func (p *policy) each(a admission.Attributes, visit func(used usage, annotations map[string]string) error) error {
	if sub := a.GetSubresource(); sub != "" && sub != "ephemeralcontainers" {
		return nil
	}
	all, annotations := usages(a.GetObject())
	_, pod := a.GetObject().(*corev1.Pod)
	if _, mirrored := annotations[corev1.MirrorPodAnnotationKey]; pod && mirrored { // kubelet runs it already, or removes it
		return nil
	}
	before, _ := usages(a.GetOldObject())
	for _, used := range all {
		if slices.ContainsFunc(before, func(old usage) bool { return old.key == used.key && old.image == used.image }) {
			continue
		}
		if err := visit(used, annotations); err != nil {
			return err
		}
	}
	return nil
}

// usages are the uses of images in an object that makes something run, with its annotations.
func usages(object runtime.Object) (all []usage, annotations map[string]string) {
	if build, ok := object.(*buildv1.Build); ok {
		return beginnings(&build.Spec.CommonSpec), build.Annotations
	}
	spec, annotations := podSpec(object)
	if spec == nil {
		return nil, nil
	}
	for _, container := range containers(spec) {
		all = append(all, usage{
			container.Name, corev1.ObjectReference{Kind: dockerKind, Name: container.Image}, func(image string) { container.Image = image },
		})
	}
	return all, annotations
}

// beginnings are the images that a build names, as OpenShift 3 sees them: its strategy's, and those that source comes from. What a Dockerfile names
// only the builder reads.
func beginnings(spec *buildv1.CommonSpec) (all []usage) {
	add := func(key string, from *corev1.ObjectReference) {
		all = append(all, usage{key, *from, func(image string) { *from = corev1.ObjectReference{Kind: dockerKind, Name: image} }})
	}
	if docker := spec.Strategy.DockerStrategy; docker != nil && docker.From != nil {
		add("strategy", docker.From)
	}
	if source := spec.Strategy.SourceStrategy; source != nil {
		add("strategy", &source.From)
	}
	if custom := spec.Strategy.CustomStrategy; custom != nil {
		add("strategy", &custom.From)
	}
	for i := range spec.Source.Images {
		add("source "+strconv.Itoa(i), &spec.Source.Images[i].From)
	}
	return all
}

// containers are all of a pod, the ephemeral ones too; their names differ.
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

// podSpec is that of a pod or of a workload's template, with the annotations of the object.
func podSpec(object runtime.Object) (*corev1.PodSpec, map[string]string) {
	switch o := object.(type) {
	case *corev1.Pod:
		return &o.Spec, o.Annotations
	case *corev1.ReplicationController:
		return templateSpec(o.Spec.Template), o.Annotations
	case *openshiftappsv1.DeploymentConfig:
		return templateSpec(o.Spec.Template), o.Annotations
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec, o.Annotations
	case *appsv1.ReplicaSet:
		return &o.Spec.Template.Spec, o.Annotations
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec, o.Annotations
	case *appsv1.DaemonSet:
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
