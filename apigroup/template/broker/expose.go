package broker

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/osbserver"
	"github.com/slipway-platform/slipway/internal/singlepath"
)

// Prefixes of the annotations that expose a value. The rest of the annotation's name is the name of
// the credential. The annotation's value is a JSONPath template that is evaluated for the object.
const (
	exposePrefix       = "template.openshift.io/expose-"
	base64ExposePrefix = "template.openshift.io/base64-expose-"
)

// The API server evaluates expressions that template authors write, so the expressions must be
// cheap. Expressions are rejected if they are long or if their result can be larger than the
// object. These constants limit the number of expressions and the total size of the values. A
// platform stores the values in a Secret, which has the same size limit.
const (
	maxCredentials = 100
	maxExposed     = 1 << 20
)

// exposed adds to the values map the values that an object's annotations expose. With
// base64ExposePrefix, a value can contain arbitrary bytes, and is base64-encoded.
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
			return osbserver.Refuse(http.StatusBadRequest, "annotation %s: another annotation exposes %q too", annotation, name)
		}
		if len(values) == maxCredentials {
			return osbserver.Refuse(http.StatusBadRequest, "annotation %s: an instance can expose at most %d values", annotation, maxCredentials)
		}
		value, err := evaluate(annotations[annotation], content, !plain, maxExposed-size(values))
		if err != nil {
			return osbserver.Refuse(http.StatusBadRequest, "annotation %s: %w", annotation, err)
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

// evaluate evaluates a JSONPath template. The result contains at most limit bytes. Missing values
// are empty. If an expression has more than one value, evaluate returns an error.
func evaluate(template string, content any, encode bool, limit int) (string, error) {
	path, err := singlepath.Parse("expose", template)
	if err != nil {
		return "", err
	}
	path.AllowMissingKeys(true)
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
