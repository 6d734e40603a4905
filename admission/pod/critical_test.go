package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestCriticalAnnotationGivesPriorityInPlatformNamespaces(t *testing.T) {
	for _, tt := range []struct {
		namespace, value, class, want string
	}{
		{"kube-system", "true", "", clusterCritical},
		{"openshift-monitoring", "", "", clusterCritical},
		{"kube-system", "false", "", ""},
		{"kube-system", "true", "system-node-critical", "system-node-critical"},
		{"shop", "true", "", ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{criticalAnnotation: tt.value}}, Spec: corev1.PodSpec{PriorityClassName: tt.class}}
		request := admission.NewAttributesRecord(pod, nil, corev1.SchemeGroupVersion.WithKind("Pod"), tt.namespace, "x", corev1.SchemeGroupVersion.WithResource("pods"), "",
			admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "joe"})
		if err := newCritical().Admit(t.Context(), request, nil); err != nil {
			t.Fatal(err)
		}
		if got := pod.Spec.PriorityClassName; got != tt.want {
			t.Errorf("%+v: the class is %q", tt, got)
		}
	}
}
