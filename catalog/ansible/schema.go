package ansible

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

const schemaVersion = "http://json-schema.org/draft-04/schema"

// types maps parameter types to JSON schema types.
var types = map[string]string{
	"": "string", "string": "string", "enum": "string", "int": "integer", "integer": "integer", "number": "number",
	"bool": "boolean", "boolean": "boolean",
}

// typeOf returns a parameter's JSON schema type, or "" if the parameter's type is unknown.
func typeOf(p parameter) string { return types[strings.ToLower(p.Type)] }

// schemaOf returns the JSON schema (draft 4) for parameters.
func schemaOf(parameters []parameter) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, p := range parameters {
		property := map[string]any{"type": typeOf(p)}
		for key, value := range map[string]any{
			"title": p.Title, "description": p.Description, "pattern": p.Pattern, "maxLength": p.MaxLength, "minLength": p.MinLength,
		} {
			if value != "" && value != 0 {
				property[key] = value
			}
		}
		if p.Default != nil {
			property["default"] = p.Default
		}
		if len(p.Enum) > 0 {
			property["enum"] = p.Enum
		}
		if p.Maximum != nil {
			property["maximum"] = *p.Maximum
		}
		if p.Minimum != nil {
			property["minimum"] = *p.Minimum
		}
		properties[p.Name] = property
		if p.Required {
			required = append(required, p.Name)
		}
	}
	schema := map[string]any{"$schema": schemaVersion, "type": "object", "properties": properties}
	if len(required) > 0 { // draft 4 does not allow an empty list
		schema["required"] = required
	}
	return schema
}

// formOf returns the order of parameters in the format that OpenShift 3's web console expects.
// Parameters with the same display_group form a field set.
func formOf(parameters []parameter) []any {
	form := []any{}
	groups := map[string]map[string]any{}
	for _, p := range parameters {
		var field any = p.Name
		if p.DisplayType != "" {
			field = map[string]any{"key": p.Name, "type": p.DisplayType}
		}
		if p.DisplayGroup == "" {
			form = append(form, field)
			continue
		}
		group, ok := groups[p.DisplayGroup]
		if !ok {
			group = map[string]any{"type": "fieldset", "title": p.DisplayGroup, "items": []any{}}
			groups[p.DisplayGroup] = group
			form = append(form, group)
		}
		group["items"] = append(group["items"].([]any), field)
	}
	return form
}

// complete checks the values of parameters, and returns them together with the default values of
// missing parameters.
func complete(parameters []parameter, values map[string]any) (map[string]any, error) {
	result := map[string]any{}
	for _, p := range parameters {
		value, ok := values[p.Name]
		if !ok || value == nil {
			if p.Default != nil {
				result[p.Name] = p.Default
			} else if p.Required {
				return nil, osbserver.Refuse(http.StatusBadRequest, "parameters.%s: a value is required", p.Name)
			}
			continue
		}
		if reason := violates(p, value); reason != "" {
			return nil, osbserver.Refuse(http.StatusBadRequest, "parameters.%s: %s", p.Name, reason)
		}
		result[p.Name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(parameters, func(p parameter) bool { return p.Name == name }) {
			return nil, osbserver.Refuse(http.StatusBadRequest, "parameters.%s: the plan has no such parameter", name)
		}
	}
	return result, nil
}

// violates returns the rule that a value violates, or "". The result never contains the value,
// because it might be a secret.
func violates(p parameter, value any) string {
	var number float64
	var text string
	ok := false
	switch typeOf(p) {
	case "string":
		text, ok = value.(string)
	case "boolean":
		_, ok = value.(bool)
	case "integer":
		number, ok = value.(float64)
		ok = ok && number == float64(int64(number))
	case "number":
		number, ok = value.(float64)
	}
	isText := typeOf(p) == "string"
	switch {
	case !ok:
		return fmt.Sprintf("the value must be of type %s", typeOf(p))
	case isText && len(p.Enum) > 0 && !slices.Contains(p.Enum, text):
		return fmt.Sprintf("the value must be one of %s", strings.Join(p.Enum, ", "))
	case isText && p.Pattern != "" && !regexp.MustCompile(p.Pattern).MatchString(text):
		return fmt.Sprintf("the value must match the pattern %s", p.Pattern)
	case isText && p.MaxLength > 0 && utf8.RuneCountInString(text) > p.MaxLength:
		return fmt.Sprintf("the value must have at most %d characters", p.MaxLength)
	case isText && utf8.RuneCountInString(text) < p.MinLength:
		return fmt.Sprintf("the value must have at least %d characters", p.MinLength)
	case p.Maximum != nil && number > *p.Maximum:
		return fmt.Sprintf("the value must be at most %v", *p.Maximum)
	case p.Minimum != nil && number < *p.Minimum:
		return fmt.Sprintf("the value must be at least %v", *p.Minimum)
	}
	return ""
}

// equal reports whether the JSON encodings of two maps are equal.
func equal(a, b map[string]any) bool {
	first, firstErr := json.Marshal(a)
	second, secondErr := json.Marshal(b)
	return firstErr == nil && secondErr == nil && (string(first) == string(second) || len(a)+len(b) == 0)
}
