package debug

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/kubectl/pkg/polymorphichelpers"
)

// Annotations of the debug pod, as in OpenShift 3.11.
const (
	sourceContainer = "debug.openshift.io/source-container"
	sourceResource  = "debug.openshift.io/source-resource"
)

// options specifies how the debug pod differs from its source.
type options struct {
	container, image, nodeName string
	command                    []string
	environment                []string // NAME=VALUE sets a variable, NAME- removes it
	terminal, input            bool
	// root is nil to keep the pod's user, true to run as root, and false to run as a user other
	// than root. user is a UID. If it is negative, the debug pod keeps the pod's user.
	root *bool
	user int64

	// source is the spec of the pods to debug. It is nil for images and nodes.
	source *corev1.PodSpec

	keepAnnotations, keepLiveness, keepReadiness, keepInitContainers, oneContainer bool
}

// of returns the debug pod for a pod, a controller that creates pods, an image stream tag or a
// node. resource is the object's resource. original is the container's command, which the debug
// command replaces.
func (w *options) of(object runtime.Object, resource string) (pod *corev1.Pod, original string, err error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, "", err
	}
	source := &unstructured.Unstructured{Object: content}
	pod = &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	switch object := object.(type) {
	case *corev1.Node:
		err = w.onNode(pod, object)
	case *imagev1.ImageStreamTag:
		err = ofImage(pod, &object.Image)
	case *imagev1.ImageStreamImage:
		err = ofImage(pod, &object.Image)
	default:
		err = w.copyOf(pod, object, source)
	}
	if err != nil {
		return nil, "", err
	}
	pod.Namespace, pod.Name = source.GetNamespace(), name(source.GetName())
	container, err := w.selectContainer(&pod.Spec)
	if err != nil {
		return nil, "", err
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, sourceResource, resource+"/"+source.GetName())
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, sourceContainer, container.Name)
	if original = strings.Join(slices.Concat(container.Command, container.Args), " "); original == "" {
		original = "<image entrypoint>"
	}
	if err := w.change(container); err != nil {
		return nil, "", err
	}
	w.changePod(&pod.Spec, *container)
	return pod, original, nil
}

// name returns a unique name for the debug pod of an object.
func name(of string) string {
	const maximum = 50 // with the suffix, the name must be a valid host name
	if len(of) > maximum {
		of = of[:maximum]
	}
	return strings.Trim(strings.NewReplacer(".", "-", ":", "-", "@", "-", "_", "-").Replace(of), "-") + "-debug-" + rand.String(5)
}

// copyOf sets pod to a copy of object. If object is not a pod, copyOf creates the pod from the
// object's pod template. The pod has no labels, so that no controller adopts it.
func (w *options) copyOf(pod *corev1.Pod, object runtime.Object, source *unstructured.Unstructured) error {
	has, err := polymorphichelpers.UpdatePodSpecForObjectFn(object, func(spec *corev1.PodSpec) error {
		pod.Spec, w.source = *spec.DeepCopy(), spec.DeepCopy()
		return nil
	})
	if err != nil || !has {
		return errors.Join(err, errors.New("it is not a pod, a node, an image stream tag or a controller of pods"))
	}
	if !w.keepAnnotations {
		return nil
	}
	pod.Annotations = source.GetAnnotations()
	if _, is := object.(*corev1.Pod); !is {
		pod.Annotations, _, err = unstructured.NestedStringMap(source.Object, "spec", "template", "metadata", "annotations")
	}
	return err
}

// ofImage sets pod to a pod that runs an image from an image stream.
func ofImage(pod *corev1.Pod, image *imagev1.Image) error {
	if image.DockerImageReference == "" {
		return errors.New("it has no image yet")
	}
	pod.Spec.Containers = []corev1.Container{{Name: "container-00", Image: image.DockerImageReference}}
	return nil
}

// onNode sets pod to a privileged pod in the node's network and PID namespaces. The node's root
// directory is mounted at /host. onNode requires --image.
func (w *options) onNode(pod *corev1.Pod, node *corev1.Node) error {
	if w.image == "" {
		return errors.New("a node has no image: set --image")
	}
	privileged, root := true, int64(0)
	pod.Spec = corev1.PodSpec{
		NodeName: node.Name, HostNetwork: true, HostPID: true,
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Volumes:     []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}},
		Containers: []corev1.Container{{
			Name: "container-00", Image: w.image,
			SecurityContext: &corev1.SecurityContext{Privileged: &privileged, RunAsUser: &root},
			VolumeMounts:    []corev1.VolumeMount{{Name: "host", MountPath: "/host"}},
		}},
	}
	w.nodeName = node.Name
	return nil
}

// selectContainer returns the container to debug. The default is the first container.
func (w *options) selectContainer(spec *corev1.PodSpec) (*corev1.Container, error) {
	var names []string
	for i := range spec.Containers {
		if w.container == "" || w.container == spec.Containers[i].Name {
			return &spec.Containers[i], nil
		}
		names = append(names, spec.Containers[i].Name)
	}
	if len(names) == 0 {
		return nil, errors.New("it has no containers")
	}
	return nil, fmt.Errorf("it has no container %q, only %s", w.container, strings.Join(names, ", "))
}

// change sets the container's command, image, environment variables and user.
func (w *options) change(container *corev1.Container) error {
	container.Command, container.Args = w.command, nil
	container.TTY, container.Stdin, container.StdinOnce = w.terminal, w.input, w.input
	if w.image != "" {
		container.Image = w.image
	}
	for _, text := range w.environment {
		name, value, set := strings.Cut(text, "=")
		if !set {
			removed := false
			if name, removed = strings.CutSuffix(text, "-"); !removed {
				return fmt.Errorf("parse %q: must be NAME=VALUE, or NAME- to remove a variable", text)
			}
		}
		container.Env = slices.DeleteFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == name })
		if set {
			container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
		}
	}
	if w.root == nil && w.user < 0 {
		return nil
	}
	if container.SecurityContext == nil {
		container.SecurityContext = &corev1.SecurityContext{}
	}
	user, notRoot := w.user, false
	switch {
	case w.root != nil && !*w.root:
		notRoot = true
		container.SecurityContext.RunAsUser = nil
	case w.root != nil:
		user = 0
		fallthrough
	default:
		container.SecurityContext.RunAsUser = &user
	}
	container.SecurityContext.RunAsNonRoot = &notRoot
	return nil
}

// changePod removes all settings that could cause the pod to be terminated, moved or delayed.
// container is the container to debug.
func (w *options) changePod(spec *corev1.PodSpec, container corev1.Container) {
	spec.RestartPolicy, spec.NodeName, spec.EphemeralContainers = corev1.RestartPolicyNever, w.nodeName, nil
	if !w.keepInitContainers {
		spec.InitContainers = nil
	}
	if w.oneContainer {
		spec.Containers = []corev1.Container{container}
	}
	for i := range spec.Containers {
		if !w.keepLiveness {
			spec.Containers[i].LivenessProbe, spec.Containers[i].StartupProbe = nil, nil
		}
		if !w.keepReadiness {
			spec.Containers[i].ReadinessProbe = nil
		}
	}
}
