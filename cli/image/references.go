package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/cli/objects"
)

// references contains the images and tags to which objects refer, and the names of these objects.
type references struct {
	// images contains referring objects by digest, tags by <project>/<stream>:<tag>.
	images, tags map[string][]string
	problems     []error
}

// workload is an object with a pod template. A cron job has it in its job template.
type workload struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Template    *corev1.PodTemplateSpec `json:"template"`
		JobTemplate struct {
			Spec struct {
				Template *corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		} `json:"jobTemplate"`
	} `json:"spec"`
}

// workloads returns the resources with pod templates, except deployment configs, whose triggers are
// read, too.
func workloads() map[string]schema.GroupVersionResource {
	return map[string]schema.GroupVersionResource{
		"replicationcontroller": {Version: "v1", Resource: "replicationcontrollers"},
		"deployment":            {Group: "apps", Version: "v1", Resource: "deployments"},
		"replicaset":            {Group: "apps", Version: "v1", Resource: "replicasets"},
		"daemonset":             {Group: "apps", Version: "v1", Resource: "daemonsets"},
		"statefulset":           {Group: "apps", Version: "v1", Resource: "statefulsets"},
		"job":                   {Group: "batch", Version: "v1", Resource: "jobs"},
		"cronjob":               {Group: "batch", Version: "v1", Resource: "cronjobs"},
	}
}

// findReferences reads all objects that can refer to an image. It ignores pods that have ended and
// were created before since.
func findReferences(ctx context.Context, client dynamic.Interface, namespace string, since time.Time) (*references, error) {
	r := &references{images: map[string][]string{}, tags: map[string][]string{}}
	pods, err := objects.List[corev1.Pod](ctx, client, corev1.SchemeGroupVersion.WithResource("pods"), namespace, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range pods {
		r.addPod(&pods[i], since)
	}
	for kind, resource := range workloads() {
		workloads, err := objects.List[workload](ctx, client, resource, namespace, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range workloads {
			owner := ownerOf(kind, &workloads[i].ObjectMeta)
			r.addTemplate(owner, workloads[i].Namespace, workloads[i].Spec.Template)
			r.addTemplate(owner, workloads[i].Namespace, workloads[i].Spec.JobTemplate.Spec.Template)
			r.addTriggers(owner, &workloads[i].ObjectMeta)
		}
	}
	configs, err := objects.List[appsv1.DeploymentConfig](ctx, client, appsv1.GroupVersion.WithResource("deploymentconfigs"), namespace, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range configs {
		r.addDeploymentConfig(&configs[i])
	}
	return r, r.addBuilds(ctx, client, namespace)
}

func (r *references) addPod(pod *corev1.Pod, since time.Time) {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if ended && pod.CreationTimestamp.Time.Before(since) {
		return
	}
	owner := ownerOf("pod", &pod.ObjectMeta)
	r.addSpec(owner, pod.Namespace, &pod.Spec)
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for _, status := range statuses {
			if _, digest, ok := strings.Cut(status.ImageID, "@"); ok {
				r.images[digest] = append(r.images[digest], owner)
			}
		}
	}
}

func (r *references) addTemplate(owner, namespace string, template *corev1.PodTemplateSpec) {
	if template != nil {
		r.addSpec(owner, namespace, &template.Spec)
	}
}

func (r *references) addSpec(owner, namespace string, spec *corev1.PodSpec) {
	for _, container := range spec.InitContainers {
		r.addName(owner, namespace, container.Image)
	}
	for _, container := range spec.Containers {
		r.addName(owner, namespace, container.Image)
	}
	for _, container := range spec.EphemeralContainers {
		r.addName(owner, namespace, container.Image)
	}
	for _, volume := range spec.Volumes {
		if volume.Image != nil {
			r.addName(owner, namespace, volume.Image.Reference)
		}
	}
}

// addName records an image of a pod. An image with a tag counts as a tag of an image stream in any
// registry, because the cluster's registry has several names, and streams with local lookup need
// none.
func (r *references) addName(owner, namespace, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	parsed, err := record.ParseReference(text)
	if err != nil {
		r.problems = append(r.problems, fmt.Errorf("%s: %w", owner, err))
		return
	}
	if parsed.Digest != "" {
		r.images[parsed.Digest] = append(r.images[parsed.Digest], owner)
		return
	}
	if parsed.Tag == "" {
		parsed.Tag = "latest"
	}
	stream := parsed.Repository
	if !strings.Contains(text, "/") {
		stream = namespace + "/" + strings.TrimPrefix(stream, "library/")
	}
	tag := stream + ":" + parsed.Tag
	r.tags[tag] = append(r.tags[tag], owner)
}

// addObject records a reference to an image, an image stream image or an image stream tag.
func (r *references) addObject(owner, namespace string, from *corev1.ObjectReference) {
	if from == nil || from.Name == "" {
		return
	}
	if from.Namespace != "" {
		namespace = from.Namespace
	}
	switch from.Kind {
	case "DockerImage":
		r.addName(owner, namespace, from.Name)
	case "ImageStreamImage", "ImageStreamTag":
		if _, digest, ok := strings.Cut(from.Name, "@"); ok {
			r.images[digest] = append(r.images[digest], owner)
			return
		}
		tag := namespace + "/" + from.Name
		r.tags[tag] = append(r.tags[tag], owner)
	}
}

// addTriggers records the tags in an object's annotation image.openshift.io/triggers.
func (r *references) addTriggers(owner string, object *metav1.ObjectMeta) {
	var triggers []struct {
		From corev1.ObjectReference `json:"from"`
	}
	if text := object.Annotations["image.openshift.io/triggers"]; text != "" && json.Unmarshal([]byte(text), &triggers) == nil {
		for i := range triggers {
			r.addObject(owner, object.Namespace, &triggers[i].From)
		}
	}
}

func (r *references) addDeploymentConfig(config *appsv1.DeploymentConfig) {
	owner := ownerOf("deploymentconfig", &config.ObjectMeta)
	r.addTemplate(owner, config.Namespace, config.Spec.Template)
	for _, trigger := range config.Spec.Triggers {
		if params := trigger.ImageChangeParams; params != nil {
			r.addObject(owner, config.Namespace, &params.From)
			r.addName(owner, config.Namespace, params.LastTriggeredImage)
		}
	}
}

func (r *references) addBuilds(ctx context.Context, client dynamic.Interface, namespace string) error {
	configs, err := objects.List[buildv1.BuildConfig](ctx, client, buildv1.GroupVersion.WithResource("buildconfigs"), namespace, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range configs {
		r.addBuild(ownerOf("buildconfig", &configs[i].ObjectMeta), configs[i].Namespace, &configs[i].Spec.CommonSpec)
	}
	builds, err := objects.List[buildv1.Build](ctx, client, buildv1.GroupVersion.WithResource("builds"), namespace, metav1.ListOptions{})
	for i := range builds {
		r.addBuild(ownerOf("build", &builds[i].ObjectMeta), builds[i].Namespace, &builds[i].Spec.CommonSpec)
	}
	return err
}

func (r *references) addBuild(owner, namespace string, spec *buildv1.CommonSpec) {
	if s := spec.Strategy.DockerStrategy; s != nil {
		r.addObject(owner, namespace, s.From)
	}
	if s := spec.Strategy.SourceStrategy; s != nil {
		r.addObject(owner, namespace, &s.From)
	}
	if s := spec.Strategy.CustomStrategy; s != nil {
		r.addObject(owner, namespace, &s.From)
	}
	for i := range spec.Source.Images {
		r.addObject(owner, namespace, &spec.Source.Images[i].From)
	}
}

// invalid returns an error that contains all references that cannot be parsed, or nil.
func (r *references) invalid() error {
	if len(r.problems) == 0 {
		return nil
	}
	return fmt.Errorf("nothing is removed, because these references cannot be parsed; fix them, or use --ignore-invalid-refs:\n%w", errors.Join(r.problems...))
}

func ownerOf(kind string, object *metav1.ObjectMeta) string {
	return kind + "/" + object.Name + " namespace/" + object.Namespace
}
