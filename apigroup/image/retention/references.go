package retention

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// References maps images and tags to the objects that refer to them.
type References struct {
	// Images maps digests, and Tags maps tags in the form <project>/<stream>:<tag>, to the
	// referring objects.
	Images, Tags map[string][]Owner
	// Invalid contains errors about references that cannot be parsed.
	Invalid []error
}

// NewReferences returns an empty set of references.
func NewReferences() *References {
	return &References{Images: map[string][]Owner{}, Tags: map[string][]Owner{}}
}

// Owner is an object that refers to an image.
type Owner struct{ Kind, Namespace, Name string }

// String formats the object as OpenShift 3.11 does in messages.
func (o Owner) String() string { return o.Kind + "/" + o.Name + " namespace/" + o.Namespace }

// workload is an object with a pod template. In a cron job, the pod template is in the job
// template.
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

// workloads returns the resources with pod templates, except deployment configurations, which are
// read separately because of their triggers.
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

// addPod records the images of a pod, unless the pod has terminated and was created before since.
func (r *References) addPod(pod *corev1.Pod, since time.Time) {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if ended && pod.CreationTimestamp.Time.Before(since) {
		return
	}
	owner := ownerOf("pod", &pod.ObjectMeta)
	r.AddSpec(owner, pod.Namespace, &pod.Spec)
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for _, status := range statuses {
			if _, digest, ok := strings.Cut(status.ImageID, "@"); ok {
				r.Images[digest] = append(r.Images[digest], owner)
			}
		}
	}
}

func (r *References) addTemplate(owner Owner, namespace string, template *corev1.PodTemplateSpec) {
	if template != nil {
		r.AddSpec(owner, namespace, &template.Spec)
	}
}

// AddSpec records the images of the containers and volumes of a pod.
func (r *References) AddSpec(owner Owner, namespace string, spec *corev1.PodSpec) {
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

// addName records an image of a pod. It treats an image with a tag as an image stream tag,
// regardless of the image's registry. This is necessary because the cluster's registry has several
// names, and images in streams with local lookup have names without a registry.
func (r *References) addName(owner Owner, namespace, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	parsed, err := record.ParseReference(text)
	if err != nil {
		r.Invalid = append(r.Invalid, fmt.Errorf("%s: %w", owner, err))
		return
	}
	if parsed.Digest != "" {
		r.Images[parsed.Digest] = append(r.Images[parsed.Digest], owner)
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
	r.Tags[tag] = append(r.Tags[tag], owner)
}

// addObject records a reference to an image, an image stream image or an image stream tag.
func (r *References) addObject(owner Owner, namespace string, from *corev1.ObjectReference) {
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
			r.Images[digest] = append(r.Images[digest], owner)
			return
		}
		tag := namespace + "/" + from.Name
		r.Tags[tag] = append(r.Tags[tag], owner)
	}
}

// addTriggers records the tags in an object's image.openshift.io/triggers annotation.
func (r *References) addTriggers(owner Owner, object *metav1.ObjectMeta) {
	var triggers []struct {
		From corev1.ObjectReference `json:"from"`
	}
	if text := object.Annotations["image.openshift.io/triggers"]; text != "" && json.Unmarshal([]byte(text), &triggers) == nil {
		for i := range triggers {
			r.addObject(owner, object.Namespace, &triggers[i].From)
		}
	}
}

func (r *References) addDeploymentConfig(config *appsv1.DeploymentConfig) {
	owner := ownerOf("deploymentconfig", &config.ObjectMeta)
	r.addTemplate(owner, config.Namespace, config.Spec.Template)
	for _, trigger := range config.Spec.Triggers {
		if params := trigger.ImageChangeParams; params != nil {
			r.addObject(owner, config.Namespace, &params.From)
			r.addName(owner, config.Namespace, params.LastTriggeredImage)
		}
	}
}

func (r *References) addBuild(owner Owner, namespace string, spec *buildv1.CommonSpec) {
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

func ownerOf(kind string, object *metav1.ObjectMeta) Owner {
	return Owner{Kind: kind, Namespace: object.Namespace, Name: object.Name}
}
