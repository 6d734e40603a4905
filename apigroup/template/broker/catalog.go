package broker

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	templatev1 "github.com/openshift/api/template/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// described are the annotations of templates that the catalog shows, by their name there. Of two of one name the first counts; the second is how
// documents before 3.7 call it.
var described = []struct{ shown, annotation string }{
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
	// customLabels is the parameter by which every object of an instance gets further labels.
	customLabels = "customLabelParam"
)

// catalog lists the services.
func (b *broker) catalog(r *http.Request) (response, error) {
	templates, err := b.templates(r.Context())
	if err != nil {
		return response{}, err
	}
	services := make([]service, 0, len(templates))
	taken := map[string]bool{}
	for i := range templates {
		offered := serviceOf(&templates[i])
		if taken[offered.Name] { // a platform takes no catalog in which a name comes twice
			offered.Name = templates[i].Namespace + "." + offered.Name
		}
		taken[offered.Name] = true
		services = append(services, offered)
	}
	return response{http.StatusOK, map[string][]service{"services": services}}, nil
}

// templates are all that are offered.
func (b *broker) templates(ctx context.Context) (all []templatev1.Template, err error) {
	for _, namespace := range b.namespaces {
		found, err := b.client.TemplateV1().Templates(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list templates of project %q: %w", namespace, err)
		}
		all = append(all, found.Items...)
	}
	return all, nil
}

func bindable(template *templatev1.Template) bool {
	return !strings.EqualFold(template.Annotations[bindableAnnotation], "false")
}

func serviceOf(template *templatev1.Template) service {
	offered := service{
		ID: string(template.UID), Name: template.Name, Description: template.Annotations["description"],
		Bindable: bindable(template), Metadata: map[string]string{},
	}
	if offered.Description == "" {
		offered.Description = "No description provided."
	}
	for _, one := range described {
		if value := template.Annotations[one.annotation]; value != "" && offered.Metadata[one.shown] == "" {
			offered.Metadata[one.shown] = value
		}
	}
	for tag := range strings.SplitSeq(template.Annotations["tags"], ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			offered.Tags = append(offered.Tags, tag)
		}
	}
	offered.Plans = []plan{planOf(template)}
	return offered
}

func planOf(template *templatev1.Template) plan {
	only := plan{ID: string(template.UID), Name: "default", Description: "Default plan", Free: true, Bindable: bindable(template)}
	asked := jsonSchema{Version: schemaVersion, Type: "object", Properties: map[string]jsonSchema{}}
	form := &only.Metadata.Schemas.ServiceInstance.Create.Form
	for _, parameter := range template.Parameters {
		asked.Properties[parameter.Name] = jsonSchema{
			Type: "string", Title: parameter.DisplayName, Description: parameter.Description, Default: parameter.Value,
		}
		if parameter.Required && parameter.Generate == "" {
			asked.Required = append(asked.Required, parameter.Name)
		}
		*form = append(*form, parameter.Name)
	}
	asked.Properties[customLabels] = jsonSchema{Type: "string", Title: "Custom Labels", Description: "Labels of every object, such as: tier=web, team=shop"}
	*form = append(*form, customLabels)
	only.Schemas.ServiceInstance.Create.Parameters = asked
	only.Schemas.ServiceBinding.Create.Parameters = jsonSchema{Version: schemaVersion, Type: "object"}
	return only
}
