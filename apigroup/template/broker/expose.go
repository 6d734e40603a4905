package broker

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// The prefixes of the annotations that expose a value. The rest of the annotation's name is the
// name of the credential. The annotation's value is a JSONPath template for the object.
const (
	exposePrefix       = "template.openshift.io/expose-"
	base64ExposePrefix = "template.openshift.io/base64-expose-"
)

// The API server evaluates expressions that template authors write, so they must be cheap.
// Expressions that can multiply values are rejected. These constants limit the number and length of
// expressions, and the total size of the values: a platform stores them in a Secret, which has the
// same limit.
const (
	maxCredentials = 100
	maxExpression  = 1024
	maxExposed     = 1 << 20
)

// exposed adds the values that the annotations of an object expose to values. With
// base64ExposePrefix, a value can contain any bytes, and is encoded in base64.
func exposed(values, annotations map[string]string, content any) error {
	for _, annotation := range slices.Sorted(maps.Keys(annotations)) {
		name, plain := strings.CutPrefix(annotation, exposePrefix)
		if !plain {
			var encoded bool
			if name, encoded = strings.CutPrefix(annotation, base64ExposePrefix); !encoded {
				continue
			}
		}
		if name == "" {
			continue
		}
		if _, exists := values[name]; exists {
			return refuse(http.StatusBadRequest, "annotation %s: another annotation exposes %q too", annotation, name)
		}
		if len(values) == maxCredentials {
			return refuse(http.StatusBadRequest, "annotation %s: an instance can expose at most %d values", annotation, maxCredentials)
		}
		value, err := evaluate(annotations[annotation], content, !plain, maxExposed-size(values))
		if err != nil {
			return refuse(http.StatusBadRequest, "annotation %s: %w", annotation, err)
		}
		values[name] = value
	}
	return nil
}

func size(values map[string]string) (bytes int) {
	for _, value := range values {
		bytes += len(value)
	}
	return bytes
}

// evaluate evaluates a JSONPath template to at most limit bytes. Missing values are empty. If an
// expression has more than one value, it returns an error.
func evaluate(template string, content any, encode bool, limit int) (string, error) {
	if len(template) > maxExpression {
		return "", fmt.Errorf("read JSONPath: it has %d characters, the limit is %d", len(template), maxExpression)
	}
	parsed, err := jsonpath.Parse("expose", template)
	if err != nil {
		return "", fmt.Errorf("read JSONPath: %w", err)
	}
	if err := cheap(parsed.Root); err != nil {
		return "", fmt.Errorf("read JSONPath: %w", err)
	}
	path := jsonpath.New("expose").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil {
		return "", fmt.Errorf("read JSONPath: %w", err)
	}
	results, err := path.FindResults(content)
	if err != nil {
		return "", fmt.Errorf("evaluate JSONPath: %w", err)
	}
	var text strings.Builder
	for _, values := range results {
		if len(values) > 1 {
			return "", fmt.Errorf("an expression has %d values, must have one", len(values))
		}
		for _, value := range values {
			part, err := write(value, encode)
			if err != nil {
				return "", err
			}
			if text.Len()+len(part) > limit {
				return "", fmt.Errorf("an instance can expose at most %d bytes", maxExposed)
			}
			text.WriteString(part)
		}
	}
	return text.String(), nil
}

// cheap rejects JSONPath nodes that return more than one value.
func cheap(list *jsonpath.ListNode) error {
	for _, node := range list.Nodes {
		var below []*jsonpath.ListNode
		switch typed := node.(type) {
		case *jsonpath.ListNode:
			below = []*jsonpath.ListNode{typed}
		case *jsonpath.FilterNode:
			below = []*jsonpath.ListNode{typed.Left, typed.Right}
		case *jsonpath.RecursiveNode, *jsonpath.WildcardNode, *jsonpath.UnionNode, *jsonpath.IdentifierNode:
			return errors.New("only fields, elements by index and elements that match a condition can be exposed, " +
				"not ranges, unions, wildcards and descendants (..)")
		}
		for _, child := range below {
			if err := cheap(child); err != nil {
				return err
			}
		}
	}
	return nil
}

// write formats a single value.
func write(value reflect.Value, encode bool) (string, error) {
	for value.Kind() == reflect.Interface || value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return "", nil
		}
		value = value.Elem()
	}
	switch kind := value.Kind(); {
	case kind == reflect.Slice && value.Type().Elem().Kind() == reflect.Uint8 && encode:
		return base64.StdEncoding.EncodeToString(value.Bytes()), nil
	case kind == reflect.Slice && value.Type().Elem().Kind() == reflect.Uint8:
		return string(value.Bytes()), nil
	case kind == reflect.String, kind == reflect.Bool, value.CanInt(), value.CanUint(), value.CanFloat():
		return fmt.Sprint(value.Interface()), nil
	}
	return "", fmt.Errorf("an expression has a %s, must have a string, number, boolean or bytes", value.Kind())
}
