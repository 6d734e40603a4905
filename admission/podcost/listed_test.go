package podcost

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// validate returns the plugin's error for a pod request. old is nil for a new pod.
func validate(t *testing.T, pod, old *corev1.Pod, subresource string) error {
	t.Helper()
	operation, existing := admission.Create, runtime.Object(nil)
	if old != nil {
		operation, existing = admission.Update, old
	}
	return (plugin{expand: expand}).Validate(t.Context(), admission.NewAttributesRecord(pod, existing, schema.GroupVersionKind{}, "", "",
		corev1.SchemeGroupVersion.WithResource("pods"), subresource, operation, nil, false, nil), nil)
}

func TestListedSizeOfPodIsLimited(t *testing.T) {
	long := strings.Repeat("x", maxListed)
	annotated := func(text string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"note": text}}}
	}
	with := func(containers ...corev1.Container) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: containers}}
	}
	hook := corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{long}}}}
	postStart := corev1.Lifecycle{PostStart: hook.PreStop}
	for name, tt := range map[string]struct {
		pod *corev1.Pod
		ok  bool
	}{
		"short annotation":        {annotated("x"), true},
		"long annotation":         {annotated(long), false},
		"long label":              {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": long}}}, false},
		"usual containers":        {with(make([]corev1.Container, 20)...), true},
		"many containers":         {with(make([]corev1.Container, 33)...), false},
		"many init containers":    {&corev1.Pod{Spec: corev1.PodSpec{InitContainers: make([]corev1.Container, 33)}}, false},
		"preStop hook":            {with(corev1.Container{Lifecycle: &hook}), false},
		"hook that is not listed": {with(corev1.Container{Lifecycle: &postStart, Args: []string{long}}), true},
		"many ports":              {with(corev1.Container{Ports: make([]corev1.ContainerPort, 2000)}), false},
		"path":                    {with(corev1.Container{TerminationMessagePath: long}), false},
		"image":                   {with(corev1.Container{Image: long}), false},
	} {
		if err := validate(t, tt.pod, nil, ""); (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "the limit is") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestListedSizeOfPodCannotGrow(t *testing.T) {
	annotated := func(size int) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"note": strings.Repeat("x", size)}}}
	}
	debugged := func(number int) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: make([]corev1.EphemeralContainer, number)}}
	}
	for name, tt := range map[string]struct {
		old, pod    *corev1.Pod
		subresource string
		ok          bool
	}{
		"grows below the limit":         {annotated(1), annotated(maxListed / 2), "", true},
		"grows beyond the limit":        {annotated(1), annotated(maxListed), "", false},
		"was larger and shrinks":        {annotated(3 * maxListed), annotated(2 * maxListed), "", true},
		"is larger and stays":           {annotated(2 * maxListed), annotated(2 * maxListed), "", true},
		"is larger and grows":           {annotated(2 * maxListed), annotated(3 * maxListed), "", false},
		"status":                        {annotated(1), annotated(maxListed), "status", true},
		"few ephemeral containers":      {debugged(1), debugged(20), "ephemeralcontainers", true},
		"too many ephemeral containers": {debugged(20), debugged(33), "ephemeralcontainers", false},
	} {
		if err := validate(t, tt.pod, tt.old, tt.subresource); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
