package template

import (
	"context"
	"regexp"

	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apigroup/template/process"
)

var parameterName = regexp.MustCompile(`^[a-zA-Z0-9_]+$`)

func validateTemplate(_ context.Context, template, _ *templatev1.Template) field.ErrorList {
	return validateBody(template, nil)
}

func validateBody(template *templatev1.Template, at *field.Path) (errs field.ErrorList) {
	for i, parameter := range template.Parameters {
		in := at.Child("parameters").Index(i)
		if parameter.Name == "" {
			errs = append(errs, field.Required(in.Child("name"), "name the parameter"))
		} else if !parameterName.MatchString(parameter.Name) {
			errs = append(errs, field.Invalid(in.Child("name"), parameter.Name, "does not match "+parameterName.String()))
		}
	}
	labels := make(map[string]string, len(template.ObjectLabels))
	// Replace parameter references with a valid character, because the values are not known yet.
	for key, value := range template.ObjectLabels {
		labels[process.Replace(key, "x")] = process.Replace(value, "x")
	}
	return append(errs, metavalidation.ValidateLabels(labels, at.Child("labels"))...)
}

func validateInstance(_ context.Context, instance, old *templatev1.TemplateInstance) (errs field.ErrorList) {
	at := field.NewPath("spec")
	errs = append(errs, validateBody(&instance.Spec.Template, at.Child("template"))...)
	if secret := instance.Spec.Secret; secret != nil && secret.Name == "" {
		errs = append(errs, field.Required(at.Child("secret", "name"), "name the secret that has the parameters' values"))
	}
	if instance.Spec.Requester == nil || instance.Spec.Requester.Username == "" {
		errs = append(errs, field.Required(at.Child("requester", "username"), "set the user on whose behalf the template is instantiated"))
	}
	if old != nil && !apiequality.Semantic.DeepEqual(instance.Spec, old.Spec) {
		errs = append(errs, field.Forbidden(at, "field is immutable"))
	}
	return errs
}

func validateBrokerInstance(_ context.Context, instance, _ *templatev1.BrokerTemplateInstance) (errs field.ErrorList) {
	at := field.NewPath("spec")
	errs = append(errs, validateReference(&instance.Spec.TemplateInstance, "TemplateInstance", at.Child("templateInstance"))...)
	errs = append(errs, validateReference(&instance.Spec.Secret, "Secret", at.Child("secret"))...)
	for i, id := range instance.Spec.BindingIDs {
		if id == "" {
			errs = append(errs, field.Required(at.Child("bindingIDs").Index(i), "must not be empty"))
		}
	}
	return errs
}

func validateReference(reference *corev1.ObjectReference, kind string, at *field.Path) (errs field.ErrorList) {
	if reference.Kind != kind {
		errs = append(errs, field.Invalid(at.Child("kind"), reference.Kind, "must be "+kind))
	}
	if reference.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "name the object"))
	}
	if reference.Namespace == "" {
		errs = append(errs, field.Required(at.Child("namespace"), "name the object's namespace"))
	}
	return errs
}
