package settings

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apigroup/settings/v1alpha1"
	"github.com/slipway-platform/slipway/apiserver"
)

// maxName is the maximum length of a preset's name. The name is part of a pod annotation's name,
// which can have at most 63 characters.
const maxName = 63 - len("podpreset-")

func podPresets(rules Rules) apiserver.Served {
	type preset = *v1alpha1.PodPreset
	return apiserver.Resource[preset]{
		Plural: "podpresets", Namespaced: true,
		// The API server sets a pod's defaults before it adds presets, so a preset must contain the
		// defaults of its parts.
		Default: func(p preset) {
			template := templateOf(p)
			rules.DefaultPodTemplate(template)
			container := template.Spec.Containers[0]
			p.Spec.Env, p.Spec.EnvFrom, p.Spec.VolumeMounts = container.Env, container.EnvFrom, container.VolumeMounts
			p.Spec.Volumes = template.Spec.Volumes
		},
		Validate: func(_ context.Context, p, _ preset) field.ErrorList { return validate(p, rules) },
		Columns: []apiserver.Column[preset]{
			{Name: "Selector", Description: "Labels of the pods", Value: func(p preset) any { return metav1.FormatLabelSelector(&p.Spec.Selector) }},
			apiserver.Age[preset](),
		},
	}
}

// templateOf returns a pod template with a preset's parts. The template's container has the name
// "preset" and the image "preset".
func templateOf(p *v1alpha1.PodPreset) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Volumes: p.Spec.Volumes,
		Containers: []corev1.Container{{
			Name: "preset", Image: "preset", Env: p.Spec.Env, EnvFrom: p.Spec.EnvFrom, VolumeMounts: p.Spec.VolumeMounts,
		}},
	}}
}

// validate validates a preset. Kubernetes' pod validation applies to the preset's parts.
func validate(p *v1alpha1.PodPreset, rules Rules) (errs field.ErrorList) {
	at := field.NewPath("spec")
	if len(p.Name) > maxName {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), p.Name, maxName))
	}
	errs = append(errs, metavalidation.ValidateLabelSelector(&p.Spec.Selector, metavalidation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	if len(p.Spec.Env)+len(p.Spec.EnvFrom)+len(p.Spec.Volumes)+len(p.Spec.VolumeMounts) == 0 {
		return append(errs, field.Required(at, "set at least one of env, envFrom, volumes and volumeMounts"))
	}
	template := templateOf(p.DeepCopy())
	rules.DefaultPodTemplate(template)
	for _, err := range rules.PodTemplate(template, nil) {
		err.Field = strings.Replace(err.Field, "spec.containers[0].", "spec.", 1)
		errs = append(errs, err)
	}
	return errs
}
