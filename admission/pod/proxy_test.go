package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/fake"
)

func TestProxyConnectsOnlyToPodsThatHaveTheirAddress(t *testing.T) {
	of := func(name string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: corev1.PodStatus{Phase: phase}}
	}
	plugin := newProxy()
	plugin.SetExternalKubeClientSet(fake.NewClientset(
		of("running", corev1.PodRunning), of("succeeded", corev1.PodSucceeded), of("failed", corev1.PodFailed),
	))
	for _, tt := range []struct {
		name, subresource string
		ok                bool
	}{
		{"running", "proxy", true}, {"http:running:8080", "proxy", true}, {"missing:8080", "proxy", true}, {"a:b:c:d", "proxy", true},
		{"succeeded", "proxy", false}, {"succeeded:8080", "proxy", false}, {"https:succeeded:8080", "proxy", false}, {"failed", "proxy", false},
		{"succeeded", "portforward", true},
	} {
		err := plugin.Validate(t.Context(), admission.NewAttributesRecord(&corev1.PodProxyOptions{}, nil, corev1.SchemeGroupVersion.WithKind("PodProxyOptions"),
			"shop", tt.name, corev1.SchemeGroupVersion.WithResource("pods"), tt.subresource, admission.Connect, nil, false, &user.DefaultInfo{Name: "joe"}), nil)
		if (err == nil) != tt.ok {
			t.Errorf("%s of %s: %v", tt.subresource, tt.name, err)
		}
	}
}
