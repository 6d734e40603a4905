package broker

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	templatev1 "github.com/openshift/api/template/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

// services maps template annotations to names in the catalog's metadata. If two annotations map to
// the same name, the first annotation that is set takes precedence. The second annotation uses the
// spelling from the documentation of versions before 3.7.
var services = []struct{ name, annotation string }{
	{"displayName", "openshift.io/display-name"},
	{"longDescription", "openshift.io/long-description"},
	{"longDescription", "template.openshift.io/long-description"},
	{"providerDisplayName", "openshift.io/provider-display-name"},
	{"providerDisplayName", "template.openshift.io/provider-display-name"},
	{"documentationUrl", "openshift.io/documentation-url"},
	{"documentationUrl", "template.openshift.io/documentation-url"},
	{"supportUrl", "openshift.io/support-url"},
	{"supportUrl", "template.openshift.io/support-url"},
	{"console.openshift.io/iconClass", "iconClass"},
}

const (
	bindableAnnotation = "template.openshift.io/bindable"
	schemaVersion      = "http://json-schema.org/draft-04/schema"
	// customLabels is the name of the parameter that contains additional labels for all objects of
	// an instance.
	customLabels = "customLabelParam"
)

// catalog returns the catalog, which contains a service for each offered template.
func (b *broker) catalog(r *http.Request) (osbserver.Response, error) {
	templates, err := b.templates(r.Context())
	if err != nil {
		return osbserver.Response{}, err
	}
	services := make([]service, 0, len(templates))
	names := map[string]bool{}
	for i := range templates {
		service := serviceOf(&templates[i])
		if names[service.Name] { // platforms reject a catalog with duplicate service names
			service.Name = templates[i].Namespace + "." + service.Name
		}
		names[service.Name] = true
		services = append(services, service)
	}
	return osbserver.Response{Code: http.StatusOK, Body: map[string][]service{"services": services}}, nil
}

// templates returns all offered templates.
func (b *broker) templates(ctx context.Context) (all []templatev1.Template, err error) {
	for _, namespace := range b.namespaces {
		list, err := b.client.TemplateV1().Templates(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list templates of project %q: %w", namespace, err)
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

func bindable(template *templatev1.Template) bool {
	return !strings.EqualFold(template.Annotations[bindableAnnotation], "false")
}

func serviceOf(template *templatev1.Template) service {
	svc := service{
		ID: string(template.UID), Name: template.Name, Description: template.Annotations["description"],
		Bindable: bindable(template), Metadata: map[string]string{},
	}
	if svc.Description == "" {
		svc.Description = "No description provided."
	}
	for _, entry := range services {
		if value := template.Annotations[entry.annotation]; value != "" && svc.Metadata[entry.name] == "" {
			svc.Metadata[entry.name] = value
		}
	}
	for tag := range strings.SplitSeq(template.Annotations["tags"], ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			svc.Tags = append(svc.Tags, tag)
		}
	}
	svc.Plans = []plan{planOf(template)}
	return svc
}

func planOf(template *templatev1.Template) plan {
	only := plan{ID: string(template.UID), Name: "default", Description: "Default plan", Free: true, Bindable: bindable(template)}
	schema := jsonSchema{Version: schemaVersion, Type: "object", Properties: map[string]jsonSchema{}}
	form := &only.Metadata.Schemas.ServiceInstance.Create.Form
	for _, parameter := range template.Parameters {
		schema.Properties[parameter.Name] = jsonSchema{
			Type: "string", Title: parameter.DisplayName, Description: parameter.Description, Default: parameter.Value,
		}
		if parameter.Required && parameter.Generate == "" {
			schema.Required = append(schema.Required, parameter.Name)
		}
		*form = append(*form, parameter.Name)
	}
	schema.Properties[customLabels] = jsonSchema{Type: "string", Title: "Custom Labels", Description: "Labels of every object, such as: tier=web, team=shop"}
	*form = append(*form, customLabels)
	only.Schemas.ServiceInstance.Create.Parameters = schema
	only.Schemas.ServiceBinding.Create.Parameters = jsonSchema{Version: schemaVersion, Type: "object"}
	return only
}
