package pod

import (
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

func TestRoutesAndBuildsHavePods(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	client := fake.NewClientset(&corev1.Service{ObjectMeta: meta("web")}, &corev1.Pod{ObjectMeta: meta("web-1-build")}).CoreV1()
	build := buildv1.Build{ObjectMeta: meta("web-1")}
	build.Annotations = map[string]string{buildv1.BuildPodNameAnnotation: "web-1-build"}
	for want, object := range map[string]runtime.Object{
		"web":         &routev1.Route{ObjectMeta: meta("front"), Spec: routev1.RouteSpec{To: routev1.RouteTargetReference{Kind: "Service", Name: "web"}}},
		"web-1-build": &build,
	} {
		owner, err := podOwner(t.Context(), client, object)
		if err != nil {
			t.Fatal(err)
		}
		if got := owner.(metav1.Object).GetName(); got != want {
			t.Errorf("%T: %q, want %q", object, got, want)
		}
	}
	if _, err := podOwner(t.Context(), client, &buildv1.Build{ObjectMeta: meta("new")}); err == nil {
		t.Error("a pod is found for a build without one")
	}
}
