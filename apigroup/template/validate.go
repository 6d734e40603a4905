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

func validateBody(template *templatev1.Template, at *field.Path) (problems field.ErrorList) {
	for i, parameter := range template.Parameters {
		in := at.Child("parameters").Index(i)
		if parameter.Name == "" {
			problems = append(problems, field.Required(in.Child("name"), "name the parameter"))
		} else if !parameterName.MatchString(parameter.Name) {
			problems = append(problems, field.Invalid(in.Child("name"), parameter.Name, "does not match "+parameterName.String()))
		}
	}
	labels := make(map[string]string, len(template.ObjectLabels))
	for key, value := range template.ObjectLabels { // a reference may stand where a letter may
		labels[process.Replace(key, "x")] = process.Replace(value, "x")
	}
	return append(problems, metavalidation.ValidateLabels(labels, at.Child("labels"))...)
}

func validateInstance(_ context.Context, instance, old *templatev1.TemplateInstance) (problems field.ErrorList) {
	at := field.NewPath("spec")
	problems = append(problems, validateBody(&instance.Spec.Template, at.Child("template"))...)
	if secret := instance.Spec.Secret; secret != nil && secret.Name == "" {
		problems = append(problems, field.Required(at.Child("secret", "name"), "name the secret that has the parameters' values"))
	}
	if instance.Spec.Requester == nil || instance.Spec.Requester.Username == "" {
		problems = append(problems, field.Required(at.Child("requester", "username"), "the user on whose behalf the template is instantiated"))
	}
	if old != nil && !apiequality.Semantic.DeepEqual(instance.Spec, old.Spec) {
		problems = append(problems, field.Forbidden(at, "field is immutable"))
	}
	return problems
}

func validateBrokerInstance(_ context.Context, instance, _ *templatev1.BrokerTemplateInstance) (problems field.ErrorList) {
	at := field.NewPath("spec")
	problems = append(problems, validateReference(&instance.Spec.TemplateInstance, "TemplateInstance", at.Child("templateInstance"))...)
	problems = append(problems, validateReference(&instance.Spec.Secret, "Secret", at.Child("secret"))...)
	for i, id := range instance.Spec.BindingIDs {
		if id == "" {
			problems = append(problems, field.Required(at.Child("bindingIDs").Index(i), "an identity is not empty"))
		}
	}
	return problems
}

func validateReference(reference *corev1.ObjectReference, kind string, at *field.Path) (problems field.ErrorList) {
	if reference.Kind != kind {
		problems = append(problems, field.Invalid(at.Child("kind"), reference.Kind, "must be "+kind))
	}
	if reference.Name == "" {
		problems = append(problems, field.Required(at.Child("name"), "name the object"))
	}
	if reference.Namespace == "" {
		problems = append(problems, field.Required(at.Child("namespace"), "name the object's namespace"))
	}
	return problems
}
