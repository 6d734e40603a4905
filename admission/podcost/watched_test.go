package podcost

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// TestPodRefersToFewSecrets creates pods that refer to secrets and ConfigMaps in every possible
// place.
func TestPodRefersToFewSecrets(t *testing.T) {
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	for place, add := range map[string]func(pod *corev1.Pod, name string){
		"sources of variables": func(pod *corev1.Pod, name string) {
			c := &pod.Spec.Containers[0]
			c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named(name)}})
		},
		"variables": func(pod *corev1.Pod, name string) {
			c := &pod.Spec.Containers[0]
			c.Env = append(c.Env, corev1.EnvVar{Name: "V", ValueFrom: &corev1.EnvVarSource{
				ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named(name), Key: "a"},
			}})
		},
		"pull secrets": func(pod *corev1.Pod, name string) {
			pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, named(name))
		},
	} {
		for number, ok := range map[int]bool{maxWatched: true, maxWatched + 1: false} {
			pod, same := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)}}, &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)}}
			for i := range number {
				add(pod, fmt.Sprint(i))
				add(same, "same")
			}
			validate := func(pod *corev1.Pod) error {
				return plugin{expand: func(text string, _ func(string) string) string { return text }}.Validate(t.Context(), admission.NewAttributesRecord(pod, nil,
					schema.GroupVersionKind{}, "shop", "web", corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, &metav1.CreateOptions{}, false, nil), nil)
			}
			change := func(pod, old *corev1.Pod) error {
				return plugin{expand: func(text string, _ func(string) string) string { return text }}.Validate(t.Context(), admission.NewAttributesRecord(pod, old,
					schema.GroupVersionKind{}, "shop", "web", corev1.SchemeGroupVersion.WithResource("pods"), "ephemeralcontainers", admission.Update, &metav1.UpdateOptions{}, false, nil), nil)
			}
			if err := validate(pod); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "different secrets") {
				t.Errorf("%d %s: %v", number, place, err)
			}
			debugged := pod.DeepCopy()
			debugged.Spec.EphemeralContainers = make([]corev1.EphemeralContainer, 1)
			if err := change(debugged, pod); err != nil {
				t.Errorf("a container without references is added to a pod with %d %s: %v", number, place, err)
			}
			if add(debugged, "new"); (change(debugged, pod) == nil) != (number < maxWatched) {
				t.Errorf("a reference is added to a pod with %d %s: %t", number, place, number >= maxWatched)
			}
			if err := validate(same); err != nil {
				t.Errorf("the same object in %d %s: %v", number, place, err)
			}
		}
	}
}
