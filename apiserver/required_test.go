package apiserver

import (
	"slices"
	"testing"

	openshift "github.com/openshift/api/openapi/generated_openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func TestOptionalFieldsAreRequiredByGenerator(t *testing.T) {
	definitions := openshift.GetOpenAPIDefinitions(func(string) spec.Ref { return spec.Ref{} })
	for name, fields := range optional {
		definition, exists := definitions[wireTypes+name]
		if !exists {
			t.Errorf("the type %s does not exist", name)
			continue
		}
		for _, field := range fields {
			if _, exists := definition.Schema.Properties[field]; !exists {
				t.Errorf("%s has no field %s", name, field)
			}
		}
		if got := required(wireTypes+name, definition.Schema); slices.Equal(got, definition.Schema.Required) {
			t.Errorf("%s requires %q, and none of them is optional", name, got)
		}
	}
}

func TestDefinitionsRequireFieldsThatClientsMustSet(t *testing.T) {
	definitions := openshift.GetOpenAPIDefinitions(func(string) spec.Ref { return spec.Ref{} })
	for name, want := range map[string][]string{
		"route/v1.RouteSpec":             {"to"},
		"build/v1.GitBuildSource":        {"uri"},
		"apps/v1.DeploymentRequest":      {"name"},
		"image/v1.ImageStreamImportSpec": {},
	} {
		if got := required(wireTypes+name, definitions[wireTypes+name].Schema); !slices.Equal(got, want) {
			t.Errorf("%s requires %q, want %q", name, got, want)
		}
	}
}
