// Package template reads and processes templates, and parses parameter values.
package template

import (
	"context"
	"fmt"
	"slices"
	"strings"

	templatev1 "github.com/openshift/api/template/v1"
	templateclient "github.com/openshift/client-go/template/clientset/versioned/typed/template/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/slipway-platform/slipway/apigroup/template/process"
)

// Locate parses the name of a stored template: NAME for a template in namespace, or PROJECT//NAME
// for a template in another project. It also accepts TYPE/NAME and PROJECT/TYPE/NAME.
func Locate(text, namespace string) (project, name string, err error) {
	parts := strings.Split(text, "/")
	kind := ""
	switch len(parts) {
	case 1:
		project, name = namespace, parts[0]
	case 2:
		project, kind, name = namespace, parts[0], parts[1]
	case 3:
		project, kind, name = parts[0], parts[1], parts[2]
	}
	isTemplate := slices.Contains([]string{"", "template", "templates", "templates." + templatev1.GroupName, "template." + templatev1.GroupName}, kind)
	if project == "" || name == "" || !isTemplate {
		return "", "", fmt.Errorf("parse template name %q: must be NAME or PROJECT//NAME", text)
	}
	return project, name, nil
}

// From converts an object to a template. It returns an error if the object's kind is not Template.
func From(object *unstructured.Unstructured) (*templatev1.Template, error) {
	if object.GetKind() != "Template" {
		return nil, fmt.Errorf("read template: the object is not a valid Template but a %s", object.GetKind())
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("read template %q: %w", object.GetName(), err)
	}
	template := &templatev1.Template{}
	if err := json.Unmarshal(text, template); err != nil {
		return nil, fmt.Errorf("read template %q: %w", object.GetName(), err)
	}
	return template, nil
}

// Process processes a template. The server processes it in namespace. If client is nil, Process
// processes it locally.
func Process(ctx context.Context, client templateclient.TemplateV1Interface, namespace string, template *templatev1.Template) (*templatev1.Template, error) {
	if client == nil {
		if problems := process.Template(template); len(problems) > 0 {
			return nil, fmt.Errorf("process template %q: %w", template.Name, problems.ToAggregate())
		}
		return template, nil
	}
	request := template.DeepCopy()
	request.ObjectMeta = metav1.ObjectMeta{Name: template.Name, Namespace: namespace, Labels: template.Labels, Annotations: template.Annotations}
	response := &templatev1.Template{}
	err := client.RESTClient().Post().Namespace(namespace).Resource("processedtemplates").Body(request).Do(ctx).Into(response)
	if err != nil {
		return nil, fmt.Errorf("process template %q: %w", template.Name, err)
	}
	return response, nil
}

// Objects returns a processed template's objects.
func Objects(template *templatev1.Template) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for i, raw := range template.Objects {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw.Raw, &object.Object); err != nil {
			return nil, fmt.Errorf("read template %q: objects[%d]: %w", template.Name, i, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
