package project

import (
	"encoding/json"
	"fmt"
	"strings"

	templatev1 "github.com/openshift/api/template/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
