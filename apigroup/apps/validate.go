package apps

import (
	"context"
	"math"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validator applies OpenShift's and Kubernetes' validation rules.
type validator struct{ rules Rules }

func (v validator) config(_ context.Context, dc, _ *appsv1.DeploymentConfig) (errs field.ErrorList) {
	spec, at := &dc.Spec, field.NewPath("spec")
	errs = append(errs, validation.ValidateNonnegativeField(int64(spec.Replicas), at.Child("replicas"))...)
	errs = append(errs, validation.ValidateNonnegativeField(int64(spec.MinReadySeconds), at.Child("minReadySeconds"))...)
	if limit := spec.RevisionHistoryLimit; limit != nil {
		errs = append(errs, validation.ValidateNonnegativeField(int64(*limit), at.Child("revisionHistoryLimit"))...)
	}
	if timeout := timeoutSeconds(&spec.Strategy); timeout > 0 && int64(spec.MinReadySeconds) >= timeout {
		errs = append(errs, field.Invalid(at.Child("minReadySeconds"), spec.MinReadySeconds, "must be less than the deployment's timeout"))
	}
	errs = append(errs, v.strategy(&spec.Strategy, at.Child("strategy"))...)
	for i := range spec.Triggers {
		errs = append(errs, validateTrigger(&spec.Triggers[i], at.Child("triggers").Index(i))...)
	}
	errs = append(errs, metavalidation.ValidateLabels(spec.Selector, at.Child("selector"))...)
	return append(errs, v.template(spec, at)...)
}

// timeoutSeconds returns a deployment's timeout in seconds, or 0 if its strategy has no timeout.
func timeoutSeconds(strategy *appsv1.DeploymentStrategy) int64 {
	switch {
	case strategy.RollingParams != nil && strategy.RollingParams.TimeoutSeconds != nil:
		return *strategy.RollingParams.TimeoutSeconds
	case strategy.RecreateParams != nil && strategy.RecreateParams.TimeoutSeconds != nil:
		return *strategy.RecreateParams.TimeoutSeconds
	}
	return 0
}

func (v validator) template(spec *appsv1.DeploymentConfigSpec, at *field.Path) (errs field.ErrorList) {
	if spec.Template == nil {
		return field.ErrorList{field.Required(at.Child("template"), "set the pod template")}
	}
	if len(spec.Selector) == 0 {
		errs = append(errs, field.Invalid(at.Child("selector"), spec.Selector, "selector cannot be empty"))
	} else if !labels.SelectorFromSet(spec.Selector).Matches(labels.Set(spec.Template.Labels)) {
		errs = append(errs, field.Invalid(at.Child("template", "metadata", "labels"), spec.Template.Labels, "`selector` does not match template `labels`"))
	}
	if policy := spec.Template.Spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(at.Child("template", "spec", "restartPolicy"), policy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	return append(errs, v.rules.PodTemplate(spec.Template, at.Child("template"))...)
}

func validateTrigger(trigger *appsv1.DeploymentTriggerPolicy, at *field.Path) (errs field.ErrorList) {
	switch trigger.Type {
	case appsv1.DeploymentTriggerOnConfigChange:
		return nil
	case appsv1.DeploymentTriggerOnImageChange:
	case "":
		return field.ErrorList{field.Required(at.Child("type"), "set ConfigChange or ImageChange")}
	default:
		return field.ErrorList{field.NotSupported(at.Child("type"), trigger.Type,
			[]appsv1.DeploymentTriggerType{appsv1.DeploymentTriggerOnConfigChange, appsv1.DeploymentTriggerOnImageChange})}
	}
	params, in := trigger.ImageChangeParams, at.Child("imageChangeParams")
	if params == nil {
		return field.ErrorList{field.Required(in, "set the image to watch")}
	}
	from := in.Child("from")
	errs = append(errs, validateTag(&params.From, from)...)
	if namespace := params.From.Namespace; namespace != "" {
		for _, reason := range validation.ValidateNamespaceName(namespace, false) {
			errs = append(errs, field.Invalid(from.Child("namespace"), namespace, reason))
		}
	}
	if len(params.ContainerNames) == 0 {
		errs = append(errs, field.Required(in.Child("containerNames"), "set the containers that use the image"))
	}
	return errs
}

// validateTag validates an image stream tag reference.
func validateTag(reference *corev1.ObjectReference, at *field.Path) (errs field.ErrorList) {
	if reference.Kind != "ImageStreamTag" {
		errs = append(errs, field.NotSupported(at.Child("kind"), reference.Kind, []string{"ImageStreamTag"}))
	}
	stream, tag, ok := strings.Cut(reference.Name, ":")
	switch {
	case reference.Name == "":
		errs = append(errs, field.Required(at.Child("name"), "set the tag as <stream>:<tag>"))
	case !ok || stream == "" || tag == "" || strings.Contains(tag, ":"):
		errs = append(errs, field.Invalid(at.Child("name"), reference.Name, "must be in the form of <name>:<tag>"))
	}
	return errs
}

// validateStatus rejects a decrease of the latest version, and an increase by more than 1.
func validateStatus(_ context.Context, dc, old *appsv1.DeploymentConfig) (errs field.ErrorList) {
	at := field.NewPath("status", "latestVersion")
	switch now, before := dc.Status.LatestVersion, old.Status.LatestVersion; {
	case now < 0 || now < before:
		errs = append(errs, field.Invalid(at, now, "latestVersion cannot be decremented"))
	case now > before+1:
		errs = append(errs, field.Invalid(at, now, "latestVersion can only be incremented by 1"))
	}
	return errs
}

// validateSeconds validates an optional number of seconds.
func validateSeconds(value *int64, at *field.Path) field.ErrorList {
	if value != nil && (*value < 1 || *value > math.MaxInt32) {
		return field.ErrorList{field.Invalid(at, *value, "must be between 1 and 2147483647")}
	}
	return nil
}
