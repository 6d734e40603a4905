package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestRulesMatchKubernetes(t *testing.T) {
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "localhost/web:v1"}}}}
	Rules{}.DefaultPodTemplate(template)
	if template.Spec.RestartPolicy != corev1.RestartPolicyAlways || template.Spec.Containers[0].ImagePullPolicy != corev1.PullIfNotPresent {
		t.Errorf("defaulted %+v", template.Spec)
	}
	at := field.NewPath("at")
	if errs := (Rules{}).PodTemplate(template, at); len(errs) > 0 {
		t.Errorf("pod template: %v", errs)
	}
	template.Spec.Containers[0].Image = ""
	negative := resource.MustParse("-1")
	for name, errs := range map[string]field.ErrorList{
		"at.spec.containers[0].image": Rules{}.PodTemplate(template, at),
		"at[0].name":                  Rules{}.Env([]corev1.EnvVar{{Value: "x"}}, at),
		"at.requests[memory]":         Rules{}.Resources(&corev1.ResourceRequirements{Requests: corev1.ResourceList{"memory": negative}}, at),
		"at.hard[pods]":               Rules{}.Quota(&corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": negative}}, at),
	} {
		if len(errs) == 0 || errs[0].Field != name {
			t.Errorf("errors are %v, want one at %s", errs, name)
		}
	}
}

// TestSampleQuotasAreValid uses the sample quotas from Cluster Administration 3.11, 17.6.
func TestSampleQuotasAreValid(t *testing.T) {
	terminating, not := corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating
	hard := func(amounts ...string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for i := 0; i < len(amounts); i += 2 {
			list[corev1.ResourceName(amounts[i])] = resource.MustParse(amounts[i+1])
		}
		return list
	}
	for name, quota := range map[string]corev1.ResourceQuotaSpec{
		"core-object-counts":      {Hard: hard("configmaps", "10", "persistentvolumeclaims", "4", "replicationcontrollers", "20", "secrets", "10", "services", "10")},
		"openshift-object-counts": {Hard: hard("openshift.io/imagestreams", "10")},
		"compute-resources": {Hard: hard("pods", "4", "requests.cpu", "1", "requests.memory", "1Gi", "requests.ephemeral-storage", "2Gi",
			"limits.cpu", "2", "limits.memory", "2Gi", "limits.ephemeral-storage", "4Gi")},
		"besteffort":                     {Hard: hard("pods", "1"), Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}},
		"compute-resources-long-running": {Hard: hard("pods", "4", "limits.cpu", "4", "limits.memory", "2Gi"), Scopes: []corev1.ResourceQuotaScope{not}},
		"compute-resources-time-bound":   {Hard: hard("pods", "2", "limits.cpu", "1", "limits.memory", "1Gi"), Scopes: []corev1.ResourceQuotaScope{terminating}},
		"storage-consumption": {Hard: hard("persistentvolumeclaims", "10", "requests.storage", "50Gi",
			"gold.storageclass.storage.k8s.io/requests.storage", "10Gi", "silver.storageclass.storage.k8s.io/requests.storage", "20Gi",
			"silver.storageclass.storage.k8s.io/persistentvolumeclaims", "5", "bronze.storageclass.storage.k8s.io/requests.storage", "0",
			"bronze.storageclass.storage.k8s.io/persistentvolumeclaims", "0")},
	} {
		if errs := (Rules{}).Quota(&quota, field.NewPath("spec")); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
	}
	scratch := corev1.ResourceQuotaSpec{Hard: hard("limits.ephemeral-storage", "1Gi"), Scopes: []corev1.ResourceQuotaScope{terminating}}
	if errs := (Rules{}).Quota(&scratch, field.NewPath("spec")); len(errs) != 1 || errs[0].Field != "spec.scopes" {
		t.Errorf("a scope with storage of containers: %v, want one error at spec.scopes, as in Kubernetes", errs)
	}
}
