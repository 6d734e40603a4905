package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestRulesAreThoseOfKubernetes(t *testing.T) {
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "localhost/web:v1"}}}}
	Rules{}.DefaultPodTemplate(template)
	if template.Spec.RestartPolicy != corev1.RestartPolicyAlways || template.Spec.Containers[0].ImagePullPolicy != corev1.PullIfNotPresent {
		t.Errorf("defaulted %+v", template.Spec)
	}
	at := field.NewPath("at")
	if problems := (Rules{}).PodTemplate(template, at); len(problems) > 0 {
		t.Errorf("pod template: %v", problems)
	}
	template.Spec.Containers[0].Image = ""
	negative := resource.MustParse("-1")
	for name, problems := range map[string]field.ErrorList{
		"at.spec.containers[0].image": Rules{}.PodTemplate(template, at),
		"at[0].name":                  Rules{}.Env([]corev1.EnvVar{{Value: "x"}}, at),
		"at.requests[memory]":         Rules{}.Resources(&corev1.ResourceRequirements{Requests: corev1.ResourceList{"memory": negative}}, at),
		"at.hard[pods]":               Rules{}.Quota(&corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": negative}}, at),
	} {
		if len(problems) == 0 || problems[0].Field != name {
			t.Errorf("problems are %v, want one at %s", problems, name)
		}
	}
}
