package template

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	templatev1 "github.com/openshift/api/template/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Create answers with the template whose parameters are filled in. Nothing is stored.
func (*processed) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	template, ok := object.(*templatev1.Template)
	if !ok {
		return nil, errors.NewBadRequest("not a template")
	}
	if problems := validateTemplate(ctx, template, nil); len(problems) > 0 {
		return nil, errors.NewInvalid(templatev1.GroupVersion.WithKind("Template").GroupKind(), template.Name, problems)
	}
	if validate != nil {
		if err := validate(ctx, object.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if problems := Process(template); len(problems) > 0 {
		return nil, errors.NewInvalid(templatev1.GroupVersion.WithKind("Template").GroupKind(), template.Name, problems)
	}
	return template, nil
}

// Process generates the values that parameters leave to be generated and replaces, in every object, the
// references to them: ${NAME} within a text by the value, and a text that is ${{NAME}} alone by the value
// as JSON, so that it may be a number. Objects get the template's labels and lose a namespace that is
// written out. A required parameter without a value is a problem.
func Process(template *templatev1.Template) (problems field.ErrorList) {
	values := map[string]string{}
	for i := range template.Parameters {
		parameter, at := &template.Parameters[i], field.NewPath("template", "parameters").Index(i)
		if parameter.Value == "" && parameter.Generate != "" {
			value, problem := generate(parameter, at)
			if problem != nil {
				problems = append(problems, problem)
				continue
			}
			parameter.Value = value
		}
		if parameter.Value == "" && parameter.Required {
			problems = append(problems, field.Required(at, "parameter "+parameter.Name+" is required and must be specified"))
		}
		values[parameter.Name] = parameter.Value
	}
	if len(problems) > 0 {
		return problems
	}
	labels := make(map[string]string, len(template.ObjectLabels))
	for key, value := range template.ObjectLabels {
		labels[replaceText(key, values)] = replaceText(value, values)
	}
	template.ObjectLabels = labels
	template.Message = replaceText(template.Message, values)
	for i := range template.Objects {
		if err := processObject(&template.Objects[i], values, template.ObjectLabels); err != nil {
			problems = append(problems, field.Invalid(field.NewPath("template", "objects").Index(i), "", err.Error()))
		}
	}
	return problems
}

func generate(parameter *templatev1.Parameter, at *field.Path) (string, *field.Error) {
	if parameter.Generate != "expression" {
		return "", field.NotSupported(at.Child("generate"), parameter.Generate, []string{"expression"})
	}
	if parameter.From == "" {
		return "", field.Required(at.Child("from"), "the expression to generate a value from")
	}
	value, err := Expression(parameter.From)
	if err != nil {
		return "", field.Invalid(at.Child("from"), parameter.From, err.Error())
	}
	return value, nil
}

func processObject(object *runtime.RawExtension, values, labels map[string]string) error {
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
	replaced, _ := replace(content, values).(map[string]any)
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

// replace replaces references in every text of a JSON value, keys of maps included.
func replace(value any, values map[string]string) any {
	switch typed := value.(type) {
	case map[string]any:
		replaced := make(map[string]any, len(typed))
		for key, item := range typed {
			replaced[replaceText(key, values)] = replace(item, values)
		}
		return replaced
	case []any:
		for i, item := range typed {
			typed[i] = replace(item, values)
		}
		return typed
	case string:
		return replaceString(typed, values)
	default:
		return value
	}
}

// replaceString replaces within a text; the value of a reference that is the whole text is JSON, or a text
// if it cannot be read as such.
func replaceString(text string, values map[string]string) any {
	match := whole.FindStringSubmatch(text)
	if match == nil {
		return replaceText(text, values)
	}
	value, known := values[match[1]]
	if !known {
		return text
	}
	if !json.Valid([]byte(value)) {
		return value
	}
	return json.RawMessage(value)
}

// replaceText replaces ${NAME}; a name that is no parameter stays as it is.
func replaceText(text string, values map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		if value, known := values[match[2:len(match)-1]]; known {
			return value
		}
		return match
	})
}
