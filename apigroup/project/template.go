package project

import (
	"encoding/json"
	"fmt"
	"strings"

	templatev1 "github.com/openshift/api/template/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// expand returns a template's objects. It first parses the objects and then replaces parameters in
// strings only, so that a value never extends beyond a single string.
func expand(template *templatev1.Template, values map[string]string) ([]*unstructured.Unstructured, error) {
	parameters := map[string]string{}
	for _, parameter := range template.Parameters {
		parameters[parameter.Name] = parameter.Value
	}
	for name, value := range values {
		parameters[name] = value
	}
	for _, parameter := range template.Parameters {
		if parameter.Required && parameters[parameter.Name] == "" {
			return nil, fmt.Errorf("expand template %q: parameter %s is required and has no value", template.Name, parameter.Name)
		}
	}
	var objects []*unstructured.Unstructured
	for i, raw := range template.Objects {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw.Raw, &object.Object); err != nil {
			return nil, fmt.Errorf("expand template %q: objects[%d]: %w", template.Name, i, err)
		}
		object.Object = substitute(object.Object, parameters).(map[string]any)
		if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
			return nil, fmt.Errorf("expand template %q: objects[%d] lacks a kind, an apiVersion or a name", template.Name, i)
		}
		for key, value := range template.ObjectLabels {
			labels := object.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels[key] = substituteText(value, parameters)
			object.SetLabels(labels)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// substitute replaces ${NAME} in every string of a JSON value.
func substitute(value any, parameters map[string]string) any {
	switch typed := value.(type) {
	case string:
		return substituteText(typed, parameters)
	case []any:
		for i := range typed {
			typed[i] = substitute(typed[i], parameters)
		}
	case map[string]any:
		for key := range typed {
			typed[key] = substitute(typed[key], parameters)
		}
	}
	return value
}

// substituteText replaces ${NAME} from left to right in a single pass. It does not expand
// parameters in the replacement values, and keeps unknown parameters.
func substituteText(text string, parameters map[string]string) string {
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
		value, ok := parameters[text[start+2:start+length]]
		if !ok {
			value = text[start : start+length+1]
		}
		out.WriteString(text[:start] + value)
		text = text[start+length+1:]
	}
	out.WriteString(text)
	return out.String()
}
