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

// The prefixes of annotations that expose something: the rest of the name is the credential's, the value a JSONPath template of the object.
const (
	exposePrefix       = "template.openshift.io/expose-"
	base64ExposePrefix = "template.openshift.io/base64-expose-"
)

// Whoever writes a template has its expressions evaluated in the API server, so that they must cost little: what can multiply is refused, and there are
// limits to their number and length, and to the bytes of all values: a platform puts them into a Secret, which holds not more.
const (
	maxCredentials = 100
	maxExpression  = 1024
	maxExposed     = 1 << 20
)

// exposed adds to found what the annotations of an object expose of its content. With base64ExposePrefix, bytes are given in base64 and may be any.
func exposed(found, annotations map[string]string, content any) error {
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
		if _, taken := found[name]; taken {
			return refuse(http.StatusBadRequest, "annotation %s: another one exposes %q too", annotation, name)
		}
		if len(found) == maxCredentials {
			return refuse(http.StatusBadRequest, "annotation %s: an instance may expose %d values", annotation, maxCredentials)
		}
		value, err := evaluate(annotations[annotation], content, !plain, maxExposed-size(found))
		if err != nil {
			return refuse(http.StatusBadRequest, "annotation %s: %w", annotation, err)
		}
		found[name] = value
	}
	return nil
}

func size(found map[string]string) (bytes int) {
	for _, value := range found {
		bytes += len(value)
	}
	return bytes
}

// evaluate fills in a JSONPath template, with at most so many bytes. What is missing is empty; more than one value for one expression is an error.
func evaluate(template string, content any, encode bool, most int) (string, error) {
	if len(template) > maxExpression {
		return "", fmt.Errorf("read JSONPath: it has %d characters, and may have %d", len(template), maxExpression)
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
			return "", fmt.Errorf("an expression has %d values, and may have one", len(values))
		}
		for _, value := range values {
			written, err := write(value, encode)
			if err != nil {
				return "", err
			}
			if text.Len()+len(written) > most {
				return "", fmt.Errorf("an instance may expose %d bytes", maxExposed)
			}
			text.WriteString(written)
		}
	}
	return text.String(), nil
}

// cheap refuses the parts of a JSONPath template that give more than one value for one.
func cheap(list *jsonpath.ListNode) error {
	for _, node := range list.Nodes {
		var below []*jsonpath.ListNode
		switch typed := node.(type) {
		case *jsonpath.ListNode:
			below = []*jsonpath.ListNode{typed}
		case *jsonpath.FilterNode:
			below = []*jsonpath.ListNode{typed.Left, typed.Right}
		case *jsonpath.RecursiveNode, *jsonpath.WildcardNode, *jsonpath.UnionNode, *jsonpath.IdentifierNode:
			return errors.New("only fields, elements by number and those that meet a condition may be exposed, no ranges, unions, wildcards and descendants (..)")
		}
		for _, one := range below {
			if err := cheap(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// write is a single value as text.
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
	return "", fmt.Errorf("an expression has a %s, and may have a text, number, truth value or bytes", value.Kind())
}
