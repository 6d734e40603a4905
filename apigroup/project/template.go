package project

import (
	"encoding/json"
	"fmt"
	"strings"

	projectv1 "github.com/openshift/api/project/v1"
	templatev1 "github.com/openshift/api/template/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// The parameters that a request gives to its template.
const (
	projectParameter     = "PROJECT_NAME"
	displayNameParameter = "PROJECT_DISPLAYNAME"
	descriptionParameter = "PROJECT_DESCRIPTION"
	adminParameter       = "PROJECT_ADMIN_USER"
	requesterParameter   = "PROJECT_REQUESTING_USER"
)

// DefaultTemplate makes the template of projects where none is configured: the project, and the role admin in it for the user.
// `oc adm create-bootstrap-project-template` prints the same.
func DefaultTemplate() (*templatev1.Template, error) {
	project := &projectv1.Project{
		TypeMeta: metav1.TypeMeta{APIVersion: projectv1.GroupVersion.String(), Kind: "Project"},
		ObjectMeta: metav1.ObjectMeta{Name: "${" + projectParameter + "}", Annotations: map[string]string{
			displayNameAnnotation: "${" + displayNameParameter + "}",
			descriptionAnnotation: "${" + descriptionParameter + "}",
			requesterAnnotation:   "${" + requesterParameter + "}",
		}},
	}
	admin := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: "admin", Namespace: "${" + projectParameter + "}"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "${" + adminParameter + "}"}},
	}
	template := &templatev1.Template{
		TypeMeta:   metav1.TypeMeta{APIVersion: templatev1.GroupVersion.String(), Kind: "Template"},
		ObjectMeta: metav1.ObjectMeta{Name: "project-request"},
	}
	for _, object := range []any{project, admin} {
		raw, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("make default project template: %w", err)
		}
		template.Objects = append(template.Objects, runtime.RawExtension{Raw: raw})
	}
	for _, name := range []string{projectParameter, displayNameParameter, descriptionParameter, adminParameter, requesterParameter} {
		template.Parameters = append(template.Parameters, templatev1.Parameter{Name: name})
	}
	return template, nil
}

// expand makes the objects of a template. Only the values of strings are replaced, after the objects have been parsed, so that no value
// can become more than a string.
func expand(template *templatev1.Template, values map[string]string) ([]*unstructured.Unstructured, error) {
	known := map[string]string{}
	for _, parameter := range template.Parameters {
		known[parameter.Name] = parameter.Value
	}
	for name, value := range values {
		known[name] = value
	}
	for _, parameter := range template.Parameters {
		if parameter.Required && known[parameter.Name] == "" {
			return nil, fmt.Errorf("expand template %q: parameter %s is required and has no value", template.Name, parameter.Name)
		}
	}
	var objects []*unstructured.Unstructured
	for i, raw := range template.Objects {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw.Raw, &object.Object); err != nil {
			return nil, fmt.Errorf("expand template %q: objects[%d]: %w", template.Name, i, err)
		}
		object.Object = substitute(object.Object, known).(map[string]any)
		if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
			return nil, fmt.Errorf("expand template %q: objects[%d] lacks a kind, an apiVersion or a name", template.Name, i)
		}
		for key, value := range template.ObjectLabels {
			labels := object.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels[key] = substituteText(value, known)
			object.SetLabels(labels)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// substitute replaces ${NAME} in every string of a value.
func substitute(value any, known map[string]string) any {
	switch typed := value.(type) {
	case string:
		return substituteText(typed, known)
	case []any:
		for i := range typed {
			typed[i] = substitute(typed[i], known)
		}
	case map[string]any:
		for key := range typed {
			typed[key] = substitute(typed[key], known)
		}
	}
	return value
}

// substituteText replaces ${NAME} once, from left to right: what a value brings in is not replaced again.
func substituteText(text string, known map[string]string) string {
	var out strings.Builder
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			break
		}
		length := strings.Index(text[start:], "}")
		if length < 0 {
			break
		}
		value, ok := known[text[start+2:start+length]]
		if !ok {
			value = text[start : start+length+1]
		}
		out.WriteString(text[:start] + value)
		text = text[start+length+1:]
	}
	out.WriteString(text)
	return out.String()
}
