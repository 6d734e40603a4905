// Package process replaces the parameters in templates. It has no side effects, so the API server
// and the client can share it.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.8 Templates. The syntax of parameters
// and generators is the same as in OpenShift 3.11.
package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	templatev1 "github.com/openshift/api/template/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Template generates missing parameter values, and replaces the parameter references in every
// object. It replaces ${NAME} within a string with the value. It replaces a string that consists
// only of ${{NAME}} with the value as JSON, so that the value can be, for example, a number.
// Template adds the template's labels to the objects, and removes an object's namespace unless the
// namespace contains a reference. It returns an error if a required parameter has no value, or if
// the inserted values exceed 16 MiB in total, counting each reference.
func Template(template *templatev1.Template) field.ErrorList { return Seeded(template, unpredictable) }

// Seeded is like Template, but the generated values depend only on the parameters' seeds: equal
// seeds generate equal values. Seeds must be kept as secret as the values.
func Seeded(template *templatev1.Template, seed func(parameter string) [32]byte) (errs field.ErrorList) {
	values := map[string]string{}
	for i := range template.Parameters {
		parameter, path := &template.Parameters[i], field.NewPath("template", "parameters").Index(i)
		if parameter.Value == "" && parameter.Generate != "" {
			value, err := generate(parameter, seed(parameter.Name), path)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			parameter.Value = value
		}
		if parameter.Value == "" && parameter.Required {
			errs = append(errs, field.Required(path, "parameter "+parameter.Name+" is required and must be specified"))
		}
		values[parameter.Name] = parameter.Value
	}
	if len(errs) > 0 {
		return errs
	}
	f := &filler{values: values, remaining: maxInserted}
	labels := make(map[string]string, len(template.ObjectLabels))
	for key, value := range template.ObjectLabels {
		labels[f.text(key)] = f.text(value)
	}
	template.ObjectLabels = labels
	template.Message = f.text(template.Message)
	for i := range template.Objects {
		if err := f.object(&template.Objects[i], template.ObjectLabels); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("template", "objects").Index(i), "", err.Error()))
		}
	}
	if f.remaining < 0 && len(errs) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("template", "message"), "", errTooLarge.Error()))
	}
	return errs
}

func generate(parameter *templatev1.Parameter, seed [32]byte, at *field.Path) (string, *field.Error) {
	if parameter.Generate != "expression" {
		return "", field.NotSupported(at.Child("generate"), parameter.Generate, []string{"expression"})
	}
	if parameter.From == "" {
		return "", field.Required(at.Child("from"), "set the expression to generate a value from")
	}
	value, err := Expression(parameter.From, seed)
	if err != nil {
		return "", field.Invalid(at.Child("from"), parameter.From, err.Error())
	}
	return value, nil
}

// maxInserted is the maximum total size of the values that are inserted into a template, in bytes.
// Without this limit, a template with a few short strings could exhaust the memory.
const maxInserted = 16 << 20

var errTooLarge = errors.New("references to parameters would enlarge the objects to more than 16 MiB; use smaller values or fewer references")

// filler replaces references with values.
type filler struct {
	values map[string]string
	// remaining is the number of bytes that can still be inserted. If it is negative, the limit has
	// been exceeded and the output is incomplete.
	remaining int
}

func (f *filler) object(object *runtime.RawExtension, labels map[string]string) error {
	raw := object.Raw
	if object.Object != nil {
		var err error
		if raw, err = json.Marshal(object.Object); err != nil {
			return fmt.Errorf("write object: %w", err)
		}
	}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber() // keeps numbers unchanged
	var content map[string]any
	if err := decoder.Decode(&content); err != nil {
		return fmt.Errorf("read object: %w", err)
	}
	stripNamespace(content)
	result, _ := f.fill(content).(map[string]any)
	if f.remaining < 0 {
		return errTooLarge
	}
	addLabels(result, labels)
	data, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("write object: %w", err)
	}
	*object = runtime.RawExtension{Raw: data}
	return nil
}

// stripNamespace removes a namespace that does not contain a reference such as ${NAME}, because
// objects are created in the namespace where the template is used. As in OpenShift 3, it also
// removes a namespace that contains only a reference such as ${{NAME}}.
func stripNamespace(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	if namespace, ok := metadata["namespace"].(string); ok && !reference.MatchString(namespace) {
		delete(metadata, "namespace")
	}
}

func addLabels(object map[string]any, labels map[string]string) {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok || len(labels) == 0 {
		return
	}
	existing, ok := metadata["labels"].(map[string]any)
	if !ok {
		existing = map[string]any{}
		metadata["labels"] = existing
	}
	for key, value := range labels {
		existing[key] = value
	}
}

var (
	reference = regexp.MustCompile(`\$\{([a-zA-Z0-9_]+)\}`)
	full      = regexp.MustCompile(`^\$\{\{([a-zA-Z0-9_]+)\}\}$`)
)

// Replace replaces every parameter reference in text with the given string.
func Replace(text, by string) string { return reference.ReplaceAllLiteralString(text, by) }

// fill replaces references in every string of a JSON value, including object keys.
func (f *filler) fill(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		result := make(map[string]any, len(typed))
		for key, item := range typed {
			result[f.text(key)] = f.fill(item)
		}
		return result
	case []any:
		for i, item := range typed {
			typed[i] = f.fill(item)
		}
		return typed
	case string:
		return f.wholeValue(typed)
	default:
		return value
	}
}

// wholeValue replaces references in a string. If the string is a single ${{NAME}}, the result is
// the value as JSON, or as a string if it is not valid JSON.
func (f *filler) wholeValue(text string) any {
	match := full.FindStringSubmatch(text)
	if match == nil {
		return f.text(text)
	}
	value, exists := f.values[match[1]]
	if !exists {
		return text
	}
	if value = f.take(value); !json.Valid([]byte(value)) {
		return value
	}
	return json.RawMessage(value)
}

// text replaces references of the form ${NAME}. A reference to an unknown parameter is kept.
func (f *filler) text(text string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		if value, exists := f.values[match[2:len(match)-1]]; exists {
			return f.take(value)
		}
		return match
	})
}

// take returns value, or "" if inserting the value would exceed the limit.
func (f *filler) take(value string) string {
	if f.remaining -= len(value); f.remaining < 0 {
		f.remaining = -1
		return ""
	}
	return value
}
