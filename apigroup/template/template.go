// Package template serves the API group template.openshift.io: templates, which are sets of objects
// with parameters, the processing of templates, and template instances.
//
// Source: OpenShift Container Platform 3.9 Architecture, section on templates. The wire types are
// defined in github.com/openshift/api/template/v1.
package template

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	templatev1 "github.com/openshift/api/template/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/template/broker"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/osbserver"
)

// Feature returns the template.openshift.io API group and the template service broker so that they
// can be registered with the API server. The broker offers the templates in the given projects.
func Feature(projects []string) apiserver.Feature {
	return apiserver.Feature{Hooks: brokerHooks(projects), Groups: []apiserver.Group{{
		GroupVersion: templatev1.GroupVersion,
		Install:      install,
		Legacy:       templatev1.DeprecatedInstallWithoutGroup,
		Resources: []apiserver.Served{
			templates(), instances(), brokerInstances(),
			apiserver.Virtual{Plural: "processedtemplates", New: func(apiserver.Deps) (rest.Storage, error) {
				return &processed{apiserver.Unstored[*templatev1.Template]{Singular: "processedtemplate", Namespaced: true}}, nil
			}},
		},
	}}}
}

func brokerHooks(projects []string) func(apiserver.Deps) (apiserver.Hooks, error) {
	return func(deps apiserver.Deps) (apiserver.Hooks, error) {
		handler, err := broker.New(deps, projects)
		return apiserver.Hooks{
			Filters:  []func(http.Handler) http.Handler{osbserver.RequireCredentials(broker.Root)},
			Handlers: []apiserver.Handler{{Path: broker.Root, Handler: handler}},
		}, err
	}
}

// processedKind is the kind of a template in the response to a processing request.
const processedKind = "ProcessedTemplate"

func install(scheme *runtime.Scheme) error {
	if err := templatev1.Install(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypeWithName(templatev1.GroupVersion.WithKind(processedKind), &templatev1.Template{})
	return nil
}

func templates() apiserver.Served {
	type template = *templatev1.Template
	return apiserver.Resource[template]{
		Plural: "templates", Namespaced: true, Validate: validateTemplate,
		Columns: []apiserver.Column[template]{
			{Name: "Description", Description: "What the template is for", Value: description},
			{Name: "Parameters", Description: "Number of parameters, and how many have no value", Value: parameters},
			{Name: "Objects", Description: "Number of objects", Value: func(t template) any { return int64(len(t.Objects)) }},
		},
	}
}

func instances() apiserver.Served {
	type instance = *templatev1.TemplateInstance
	return apiserver.Resource[instance]{
		Plural: "templateinstances", Namespaced: true, Status: true,
		Prepare: prepareInstance, Validate: validateInstance,
		Columns: []apiserver.Column[instance]{
			{Name: "Template", Description: "The template that was instantiated", Value: func(i instance) any { return i.Spec.Template.Name }},
		},
	}
}

func brokerInstances() apiserver.Served {
	type instance = *templatev1.BrokerTemplateInstance
	return apiserver.Resource[instance]{
		Plural: "brokertemplateinstances", Validate: validateBrokerInstance,
		Columns: []apiserver.Column[instance]{
			{Name: "TemplateInstance", Description: "The instance that the broker created", Value: func(i instance) any {
				return i.Spec.TemplateInstance.Namespace + "/" + i.Spec.TemplateInstance.Name
			}},
		},
	}
}

// prepareInstance sets the requester, which clients cannot choose, and the finalizer that keeps a
// deleted instance until its objects have been deleted.
func prepareInstance(ctx context.Context, instance, old *templatev1.TemplateInstance) {
	if old != nil {
		return
	}
	if !slices.Contains(instance.Finalizers, templatev1.TemplateInstanceFinalizer) {
		instance.Finalizers = append(instance.Finalizers, templatev1.TemplateInstanceFinalizer)
	}
	user, ok := request.UserFrom(ctx)
	if !ok {
		return
	}
	extra := map[string]templatev1.ExtraValue{}
	for key, values := range user.GetExtra() {
		extra[key] = values
	}
	instance.Spec.Requester = &templatev1.TemplateInstanceRequester{
		Username: user.GetName(), UID: user.GetUID(), Groups: slices.Clone(user.GetGroups()), Extra: extra,
	}
}

// maxDescription is the maximum length of a description in a table.
const maxDescription = 80

func description(template *templatev1.Template) any {
	text := []rune(template.Annotations["description"])
	for i, char := range text {
		if char == '\n' || i == maxDescription-3 && len(text) > maxDescription {
			return string(text[:i]) + "..."
		}
	}
	return string(text)
}

// parameters summarizes a template's parameters as OpenShift 3 does, for example as "3 (1 blank)"
// or "2 (all set)".
func parameters(template *templatev1.Template) any {
	blank, generated := 0, 0
	for _, parameter := range template.Parameters {
		switch {
		case parameter.Generate != "":
			generated++
		case parameter.Value == "":
			blank++
		}
	}
	switch total := len(template.Parameters); {
	case total == 0:
		return "0 (all set)"
	case blank > 0:
		return fmt.Sprintf("%d (%d blank)", total, blank)
	case generated > 0:
		return fmt.Sprintf("%d (%d generated)", total, generated)
	default:
		return fmt.Sprintf("%d (all set)", total)
	}
}
