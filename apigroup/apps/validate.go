package apps

import (
	"context"
	"math"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
)

// validator judges deployment configurations by OpenShift's rules and Kubernetes'.
type validator struct{ rules Rules }

func (v validator) config(_ context.Context, dc, _ *appsv1.DeploymentConfig) (problems field.ErrorList) {
	spec, at := &dc.Spec, field.NewPath("spec")
	problems = append(problems, validation.ValidateNonnegativeField(int64(spec.Replicas), at.Child("replicas"))...)
	problems = append(problems, validation.ValidateNonnegativeField(int64(spec.MinReadySeconds), at.Child("minReadySeconds"))...)
	if limit := spec.RevisionHistoryLimit; limit != nil {
		problems = append(problems, validation.ValidateNonnegativeField(int64(*limit), at.Child("revisionHistoryLimit"))...)
	}
	if timeout := timeoutSeconds(&spec.Strategy); timeout > 0 && int64(spec.MinReadySeconds) >= timeout {
		problems = append(problems, field.Invalid(at.Child("minReadySeconds"), spec.MinReadySeconds, "must be less than the deployment's timeout"))
	}
	problems = append(problems, v.strategy(&spec.Strategy, at.Child("strategy"))...)
	for i := range spec.Triggers {
		problems = append(problems, validateTrigger(&spec.Triggers[i], at.Child("triggers").Index(i))...)
	}
	problems = append(problems, metavalidation.ValidateLabels(spec.Selector, at.Child("selector"))...)
	return append(problems, v.template(spec, at)...)
}

// timeoutSeconds is how long a deployment may take, or 0 where its strategy sets no limit.
func timeoutSeconds(strategy *appsv1.DeploymentStrategy) int64 {
	switch {
	case strategy.RollingParams != nil && strategy.RollingParams.TimeoutSeconds != nil:
		return *strategy.RollingParams.TimeoutSeconds
	case strategy.RecreateParams != nil && strategy.RecreateParams.TimeoutSeconds != nil:
		return *strategy.RecreateParams.TimeoutSeconds
	}
	return 0
}

func (v validator) template(spec *appsv1.DeploymentConfigSpec, at *field.Path) (problems field.ErrorList) {
	if spec.Template == nil {
		return field.ErrorList{field.Required(at.Child("template"), "the pods to deploy")}
	}
	if len(spec.Selector) == 0 {
		problems = append(problems, field.Invalid(at.Child("selector"), spec.Selector, "selector cannot be empty"))
	} else if !labels.SelectorFromSet(spec.Selector).Matches(labels.Set(spec.Template.Labels)) {
		problems = append(problems, field.Invalid(at.Child("template", "metadata", "labels"), spec.Template.Labels, "`selector` does not match template `labels`"))
	}
	if policy := spec.Template.Spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyAlways {
		problems = append(problems, field.NotSupported(at.Child("template", "spec", "restartPolicy"), policy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	return append(problems, v.rules.PodTemplate(spec.Template, at.Child("template"))...)
}

func validateTrigger(trigger *appsv1.DeploymentTriggerPolicy, at *field.Path) (problems field.ErrorList) {
	switch trigger.Type {
	case appsv1.DeploymentTriggerOnConfigChange:
		return nil
	case appsv1.DeploymentTriggerOnImageChange:
	case "":
		return field.ErrorList{field.Required(at.Child("type"), "ConfigChange or ImageChange")}
	default:
		return field.ErrorList{field.NotSupported(at.Child("type"), trigger.Type,
			[]appsv1.DeploymentTriggerType{appsv1.DeploymentTriggerOnConfigChange, appsv1.DeploymentTriggerOnImageChange})}
	}
	params, in := trigger.ImageChangeParams, at.Child("imageChangeParams")
	if params == nil {
		return field.ErrorList{field.Required(in, "the image to watch")}
	}
	from := in.Child("from")
	problems = append(problems, validateTag(&params.From, from)...)
	if namespace := params.From.Namespace; namespace != "" {
		for _, reason := range validation.ValidateNamespaceName(namespace, false) {
			problems = append(problems, field.Invalid(from.Child("namespace"), namespace, reason))
		}
	}
	if len(params.ContainerNames) == 0 {
		problems = append(problems, field.Required(in.Child("containerNames"), "the containers that get the image"))
	}
	return problems
}

// validateTag judges a reference to an image stream's tag.
func validateTag(reference *corev1.ObjectReference, at *field.Path) (problems field.ErrorList) {
	if reference.Kind != "ImageStreamTag" {
		problems = append(problems, field.NotSupported(at.Child("kind"), reference.Kind, []string{"ImageStreamTag"}))
	}
	stream, tag, found := strings.Cut(reference.Name, ":")
	switch {
	case reference.Name == "":
		problems = append(problems, field.Required(at.Child("name"), "the tag as <stream>:<tag>"))
	case !found || stream == "" || tag == "" || strings.Contains(tag, ":"):
		problems = append(problems, field.Invalid(at.Child("name"), reference.Name, "must be in the form of <name>:<tag>"))
	}
	return problems
}

// validateStatus keeps the number of the latest deployment from going back.
func validateStatus(_ context.Context, dc, old *appsv1.DeploymentConfig) (problems field.ErrorList) {
	at := field.NewPath("status", "latestVersion")
	switch now, before := dc.Status.LatestVersion, old.Status.LatestVersion; {
	case now < 0 || now < before:
		problems = append(problems, field.Invalid(at, now, "latestVersion cannot be decremented"))
	case now > before+1:
		problems = append(problems, field.Invalid(at, now, "latestVersion can only be incremented by 1"))
	}
	return problems
}

// positive judges a number of seconds that is optional.
func positive(value *int64, at *field.Path) field.ErrorList {
	if value != nil && (*value < 1 || *value > math.MaxInt32) {
		return field.ErrorList{field.Invalid(at, *value, "must be between 1 and 2147483647")}
	}
	return nil
}
