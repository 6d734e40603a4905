package deployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// TestAQuotaCanCountDeployers: where a quota wants requests of each container, and limits pods that end, a strategy gives its deployer both.
func TestAQuotaCanCountDeployers(t *testing.T) {
	resources := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}, Limits: corev1.ResourceList{"memory": resource.MustParse("64Mi")},
	}
	rc := &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{}}}
	config := &appsv1.DeploymentConfig{Spec: appsv1.DeploymentConfigSpec{Strategy: appsv1.DeploymentStrategy{
		Resources: resources, ActiveDeadlineSeconds: ptr.To[int64](600),
	}}}
	pod := (&deployerLoop{Controllers: &Controllers{}}).pod(rc, config)
	if diff := cmp.Diff(resources, pod.Spec.Containers[0].Resources); diff != "" || len(pod.Spec.Containers) != 1 {
		t.Errorf("%d containers; resources (-want +got):\n%s", len(pod.Spec.Containers), diff)
	}
	if ptr.Deref(pod.Spec.ActiveDeadlineSeconds, 0) != 600 {
		t.Errorf("the deployer ends after %v", pod.Spec.ActiveDeadlineSeconds)
	}
}
