package config

import (
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scalar decodes a string, number or boolean. As in OpenShift, a string requires no quotes even if
// it looks like a number or a boolean.
func (d *decoder) scalar(node *yaml.Node, v reflect.Value, key string) {
	if node.Kind != yaml.ScalarNode {
		d.fail(node, key, "is %s, must be %s", describe(node), describeKind(v.Kind()))
		return
	}
	ok := false
	switch v.Kind() {
	case reflect.String:
		v.SetString(node.Value)
		ok = true
	case reflect.Bool:
		var value bool
		value, ok = boolean(node)
		v.SetBool(value)
	case reflect.Int, reflect.Int32, reflect.Int64:
		var value int64
		ok = node.ShortTag() == "!!int" && node.Decode(&value) == nil && !v.OverflowInt(value)
		v.SetInt(value)
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		var value uint64
		ok = node.ShortTag() == "!!int" && node.Decode(&value) == nil && !v.OverflowUint(value)
		v.SetUint(value)
	case reflect.Float32, reflect.Float64:
		var value float64
		number := node.ShortTag() == "!!int" || node.ShortTag() == "!!float"
		ok = number && node.Decode(&value) == nil && !v.OverflowFloat(value) && !math.IsNaN(value) && !math.IsInf(value, 0)
		v.SetFloat(value)
	}
	if !ok {
		v.SetZero()
		unquoted := ""
		if node.ShortTag() == "!!str" && node.Style != 0 {
			unquoted = ", without quotes"
		}
		d.fail(node, key, "is %s, must be %s%s", describe(node), describeKind(v.Kind()), unquoted)
		return
	}
	d.record(key, !v.IsZero())
}

// unmarshal converts a node to JSON and decodes it, for types that implement json.Unmarshaler.
func (d *decoder) unmarshal(node *yaml.Node, target json.Unmarshaler, key string) {
	value := d.free(node, key)
	data, err := json.Marshal(value)
	if err == nil && !d.broken[key] {
		err = target.UnmarshalJSON(data)
	}
	if err == nil {
		d.record(key, !isZero(value))
		return
	}
	form := "in another format"
	switch target.(type) {
	case *metav1.Duration:
		form = "a duration such as 36h or 5m"
	case *resource.Quantity:
		form = "a quantity such as 512Mi"
	}
	d.fail(node, key, "is %s, must be %s", describe(node), form)
}

// free decodes a free-form value to nil, bool, int64, uint64, float64, string, []any or
// map[string]any. Like OpenShift's YAML 1.1 decoder, it decodes unquoted yes, no, on and off as
// booleans.
func (d *decoder) free(node *yaml.Node, key string) any {
	node = d.enter(node, key)
	defer d.leave()
	if node == nil || isNull(node) {
		return nil
	}
	switch node.Kind {
	case yaml.MappingNode:
		value := map[string]any{}
		d.pairs(node, key, func(name, item *yaml.Node, path string) { value[name.Value] = d.free(item, path) })
		return value
	case yaml.SequenceNode:
		value := make([]any, len(node.Content))
		for i, item := range node.Content {
			value[i] = d.free(item, key)
		}
		return value
	}
	if value, ok := boolean(node); ok {
		return value
	}
	switch node.ShortTag() {
	case "!!int", "!!float":
		return d.number(node, key)
	}
	return node.Value
}

func (d *decoder) number(node *yaml.Node, key string) any {
	var full int64
	if node.Decode(&full) == nil && node.ShortTag() == "!!int" {
		return full
	}
	var large uint64
	if node.Decode(&large) == nil && node.ShortTag() == "!!int" {
		return large
	}
	var value float64
	if node.Decode(&value) != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		d.fail(node, key, "is %q, must be a finite number", node.Value)
		return nil
	}
	return value
}

// record records that the document sets key. set means that the value is not zero.
func (d *decoder) record(key string, set bool) {
	if path := indices.ReplaceAllString(key, ""); set && !slices.Contains(d.set, path) {
		d.set = append(d.set, path)
	}
}

// indices matches the list indices in a key path.
var indices = regexp.MustCompile(`\[\d+\]`)

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// boolean decodes the unquoted YAML 1.1 booleans true, false, yes, no, on and off.
func boolean(node *yaml.Node) (value, ok bool) {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if node.Kind != yaml.ScalarNode || node.Style&quoted != 0 {
		return false, false
	}
	return booleanWord(node.Value)
}

func booleanWord(word string) (value, ok bool) {
	switch word {
	case "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

// describe returns a description of a node for messages of the form `is ..., must be ...`.
func describe(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	if isNull(node) {
		return "empty"
	}
	return strconv.Quote(node.Value)
}

func describeKind(kind reflect.Kind) string {
	switch kind {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		return "a whole number that is not negative and not too large"
	}
	return "a whole number"
}

// isZero reports whether a free-form value is empty: null, false, 0, "", [] or {}.
func isZero(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return reflect.ValueOf(value).IsZero()
}
