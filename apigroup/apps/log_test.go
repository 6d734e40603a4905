package apps

import (
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func TestLogIgnoresPodsOfOtherOwners(t *testing.T) {
	pod := func(name string, owner types.UID) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ReplicationController", Name: "web-1", UID: owner, Controller: new(true)}}
		}
		return p
	}
	for name, c := range map[string]struct {
		phase appsv1.DeploymentStatus
		pods  []*corev1.Pod
		want  string
	}{
		"its pod":                        {appsv1.DeploymentStatusComplete, []*corev1.Pod{pod("a", ""), pod("b", "1"), pod("web-1-deploy", "1")}, "b"},
		"pods with its labels":           {appsv1.DeploymentStatusComplete, []*corev1.Pod{pod("a", ""), pod("b", "2"), pod("web-1-deploy", "1")}, "web-1-deploy"},
		"its deployer":                   {appsv1.DeploymentStatusRunning, []*corev1.Pod{pod("b", "1"), pod("web-1-deploy", "1")}, "web-1-deploy"},
		"a pod with its deployer's name": {appsv1.DeploymentStatusRunning, []*corev1.Pod{pod("web-1-deploy", "2")}, ""},
		"only pods of other owners":      {appsv1.DeploymentStatusComplete, []*corev1.Pod{pod("a", ""), pod("web-1-deploy", "")}, ""},
	} {
		client := fake.NewClientset()
		for _, p := range c.pods {
			if err := client.Tracker().Add(p); err != nil {
				t.Fatal(err)
			}
		}
		rc := &corev1.ReplicationController{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "1", Annotations: map[string]string{appsv1.DeploymentStatusAnnotation: string(c.phase)}},
			Spec:       corev1.ReplicationControllerSpec{Selector: map[string]string{"app": "web"}},
		}
		got, err := podOf(t.Context(), client.CoreV1(), rc)
		if got != c.want || (err != nil) != (c.want == "") || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("%s: pod %q, %v, want %q", name, got, err, c.want)
		}
	}
}
