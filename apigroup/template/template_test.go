package template

import (
	"strings"
	"testing"

	templatev1 "github.com/openshift/api/template/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func sample(object string, parameters ...templatev1.Parameter) *templatev1.Template {
	return &templatev1.Template{Parameters: parameters, Objects: []runtime.RawExtension{{Raw: []byte(object)}}}
}

func TestValidation(t *testing.T) {
	for name, want := range map[string]string{"GOOD_1": "", "": "parameters[0].name", "NOT-GOOD": "parameters[0].name"} {
		problems := validateTemplate(t.Context(), sample("{}", templatev1.Parameter{Name: name}), nil)
		if want == "" && len(problems) > 0 || want != "" && (len(problems) != 1 || problems[0].Field != want) {
			t.Errorf("parameter %q: %v", name, problems)
		}
	}
}

func TestLabelsCanReferToParameters(t *testing.T) {
	for value, ok := range map[string]bool{"${NAME}": true, "web-${NAME}": true, "a b": false, "${NAME} ": false} {
		template := sample("{}")
		template.ObjectLabels = map[string]string{"app": value}
		if problems := validateTemplate(t.Context(), template, nil); (len(problems) == 0) != ok {
			t.Errorf("label %q: %v", value, problems)
		}
	}
}

func TestPrepareInstanceSetsRequester(t *testing.T) {
	ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: "eve", Groups: []string{"dev"}})
	instance := &templatev1.TemplateInstance{Spec: templatev1.TemplateInstanceSpec{
		Requester: &templatev1.TemplateInstanceRequester{Username: "admin", Groups: []string{"system:masters"}},
	}}
	prepareInstance(ctx, instance, nil)
	if got := instance.Spec.Requester; got.Username != "eve" || len(got.Groups) != 1 || got.Groups[0] != "dev" {
		t.Errorf("requester is %+v", got)
	}
	changed := instance.DeepCopy()
	changed.Spec.Requester.Username = "admin"
	if problems := validateInstance(ctx, changed, instance); len(problems) != 1 || problems[0].Field != "spec" {
		t.Errorf("changing the requester: %v", problems)
	}
}

func TestColumns(t *testing.T) {
	template := sample("{}", templatev1.Parameter{Name: "A"}, templatev1.Parameter{Name: "B", Generate: "expression"})
	template.Annotations = map[string]string{"description": strings.Repeat("d", 100)}
	if got := description(template); len(got.(string)) != maxDescription {
		t.Errorf("description is %q", got)
	}
	if got := parameters(template); got != "2 (1 blank)" {
		t.Errorf("parameters are %q", got)
	}
}
