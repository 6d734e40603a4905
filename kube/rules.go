package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
)

// Rules applies Kubernetes' defaults and validation to the types that OpenShift's objects embed:
// pod templates, environment variables, resources and quotas.
type Rules struct{}

// DefaultPodTemplate sets Kubernetes' defaults, for example the restart policy.
func (Rules) DefaultPodTemplate(template *corev1.PodTemplateSpec) {
	full := corev1.PodTemplate{Template: *template}
	corev1defaults.SetObjectDefaults_PodTemplate(&full)
	*template = full.Template
}

// PodTemplate returns a pod template's validation errors.
func (Rules) PodTemplate(template *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	var internal core.PodTemplateSpec
	if err := corev1defaults.Convert_v1_PodTemplateSpec_To_core_PodTemplateSpec(template.DeepCopy(), &internal, nil); err != nil {
		return unreadable(at, err)
	}
	return validation.ValidatePodTemplateSpec(&internal, at, pod.GetValidationOptionsFromPodTemplate(&internal, nil))
}

// Env returns the validation errors of environment variables.
func (Rules) Env(variables []corev1.EnvVar, at *field.Path) field.ErrorList {
	internal := make([]core.EnvVar, len(variables))
	for i := range variables {
		if err := corev1defaults.Convert_v1_EnvVar_To_core_EnvVar(variables[i].DeepCopy(), &internal[i], nil); err != nil {
			return unreadable(at.Index(i), err)
		}
	}
	return validation.ValidateEnv(internal, at, podOptions())
}

// Resources returns the validation errors of resource requests and limits.
func (Rules) Resources(resources *corev1.ResourceRequirements, at *field.Path) field.ErrorList {
	var internal core.ResourceRequirements
	if err := corev1defaults.Convert_v1_ResourceRequirements_To_core_ResourceRequirements(resources.DeepCopy(), &internal, nil); err != nil {
		return unreadable(at, err)
	}
	return validation.ValidateContainerResourceRequirements(&internal, nil, at, podOptions())
}

// Quota returns the validation errors of a quota's spec.
func (Rules) Quota(quota *corev1.ResourceQuotaSpec, at *field.Path) field.ErrorList {
	var internal core.ResourceQuotaSpec
	if err := corev1defaults.Convert_v1_ResourceQuotaSpec_To_core_ResourceQuotaSpec(quota.DeepCopy(), &internal, nil); err != nil {
		return unreadable(at, err)
	}
	return validation.ValidateResourceQuotaSpec(&internal, at)
}

// podOptions returns the validation options for a new object.
func podOptions() validation.PodValidationOptions {
	return pod.GetValidationOptionsFromPodTemplate(&core.PodTemplateSpec{}, nil)
}

func unreadable(at *field.Path, err error) field.ErrorList {
	return field.ErrorList{field.InternalError(at, err)}
}
