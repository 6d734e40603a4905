// Package process fills in the parameters of templates. It asks nobody: the API server and the client process alike.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.8 Templates; the syntax of parameters and generators is that of OpenShift 3.11.
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

// Template generates the values that parameters leave to be generated and replaces, in every object, the
// references to them: ${NAME} within a text by the value, and a text that is ${{NAME}} alone by the value
// as JSON, so that it may be a number. Objects get the template's labels and lose a namespace that is
// written out. A required parameter without a value is a problem, and so are values of more than 16 MiB
// altogether, each counted as often as it is referred to.
func Template(template *templatev1.Template) field.ErrorList { return Seeded(template, unpredictable) }

// Seeded is like Template, with values that are generated from the seeds of the parameters' names: whoever processes a template again with
// the same ones gets the same values. Seeds are secrets as the values are.
func Seeded(template *templatev1.Template, seed func(parameter string) [32]byte) (errs field.ErrorList) {
	values := map[string]string{}
	for i := range template.Parameters {
		parameter, at := &template.Parameters[i], field.NewPath("template", "parameters").Index(i)
		if parameter.Value == "" && parameter.Generate != "" {
			value, problem := generate(parameter, seed(parameter.Name), at)
			if problem != nil {
				errs = append(errs, problem)
				continue
			}
			parameter.Value = value
		}
		if parameter.Value == "" && parameter.Required {
			errs = append(errs, field.Required(at, "parameter "+parameter.Name+" is required and must be specified"))
		}
		values[parameter.Name] = parameter.Value
	}
	if len(errs) > 0 {
		return errs
	}
	f := &filler{values: values, room: maxInserted}
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
	if f.room < 0 && len(errs) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("template", "message"), "", errTooLarge.Error()))
	}
	return errs
}

func generate(parameter *templatev1.Parameter, seed [32]byte, at *field.Path) (string, *field.Error) {
	if parameter.Generate != "expression" {
		return "", field.NotSupported(at.Child("generate"), parameter.Generate, []string{"expression"})
	}
	if parameter.From == "" {
		return "", field.Required(at.Child("from"), "the expression to generate a value from")
	}
	value, err := Expression(parameter.From, seed)
	if err != nil {
		return "", field.Invalid(at.Child("from"), parameter.From, err.Error())
	}
	return value, nil
}

// maxInserted is how many bytes of values a template may grow by: a few short texts could otherwise fill all memory.
const maxInserted = 16 << 20

var errTooLarge = errors.New("the values of parameters are referred to so often that the objects would be larger than 16 MiB; use smaller ones")

// filler replaces references by values.
type filler struct {
	values map[string]string
	// room is how many bytes of values may still be inserted; it is negative when that was too many, and then what was made is not complete.
	room int
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
	decoder.UseNumber() // numbers come out as they went in
	var content map[string]any
	if err := decoder.Decode(&content); err != nil {
		return fmt.Errorf("read object: %w", err)
	}
	stripNamespace(content)
	replaced, _ := f.fill(content).(map[string]any)
	if f.room < 0 {
		return errTooLarge
	}
	addLabels(replaced, labels)
	written, err := json.Marshal(replaced)
	if err != nil {
		return fmt.Errorf("write object: %w", err)
	}
	*object = runtime.RawExtension{Raw: written}
	return nil
}

// stripNamespace removes a namespace that names no parameter: objects belong where the template is used.
func stripNamespace(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	if namespace, ok := metadata["namespace"].(string); ok && !reference.MatchString(namespace) && !whole.MatchString(namespace) {
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
	whole     = regexp.MustCompile(`^\$\{\{([a-zA-Z0-9_]+)\}\}$`)
)

// Replace puts one text in the place of every reference to a parameter.
func Replace(text, by string) string { return reference.ReplaceAllLiteralString(text, by) }

// fill replaces references in every text of a JSON value, keys of maps included.
func (f *filler) fill(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		filled := make(map[string]any, len(typed))
		for key, item := range typed {
			filled[f.text(key)] = f.fill(item)
		}
		return filled
	case []any:
		for i, item := range typed {
			typed[i] = f.fill(item)
		}
		return typed
	case string:
		return f.whole(typed)
	default:
		return value
	}
}

// whole replaces within a text; the value of a reference that is the whole text is JSON, or a text if it
// cannot be read as such.
func (f *filler) whole(text string) any {
	match := whole.FindStringSubmatch(text)
	if match == nil {
		return f.text(text)
	}
	value, known := f.values[match[1]]
	if !known {
		return text
	}
	if value = f.take(value); !json.Valid([]byte(value)) {
		return value
	}
	return json.RawMessage(value)
}

// text replaces ${NAME}; a name that is no parameter stays as it is.
func (f *filler) text(text string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		if value, known := f.values[match[2:len(match)-1]]; known {
			return f.take(value)
		}
		return match
	})
}

// take is a value to insert, if there is room for it.
func (f *filler) take(value string) string {
	if f.room -= len(value); f.room < 0 {
		f.room = -1
		return ""
	}
	return value
}
