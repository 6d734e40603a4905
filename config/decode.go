package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-platform/slipway/internal/redact"
)

// document records the line on which a YAML document sets each key.
type document struct {
	file string
	// lines maps each key path that the document sets to its line.
	lines map[string]int
	// set lists the paths of non-zero values, without list indices.
	set []string
	// broken contains the paths of values that could not be decoded. Later checks skip them.
	broken map[string]bool
}

// line returns the line of a key. If the document omits the key, it returns the line of the nearest
// enclosing key.
func (d *document) line(key string) int {
	for key != "" {
		if line, ok := d.lines[key]; ok {
			return line
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return 0
}

// maxNodes is the maximum number of YAML nodes in a document after alias expansion. A complete
// OpenShift master-config.yaml has about 500.
const maxNodes = 50_000

// maxDepth is the maximum nesting depth of values. Without this limit, the decoder would never
// return from an alias that contains itself.
const maxDepth = 100

// decoder decodes a YAML document into a Go type.
type decoder struct {
	*document
	// retired contains keys that OpenShift 3 accepted, but for which the current types have no
	// field.
	retired  map[string]bool
	nodes    int
	depth    int
	problems Problems
}

// decode decodes the document at root into target, a pointer to a struct with JSON tags. Keys are
// case-sensitive. A null leaves a value unchanged. For a type with UnmarshalJSON, decode converts
// the YAML to JSON.
func decode(file string, root *yaml.Node, target any,
	retired map[string]bool) (*document, Problems) {
	d := &decoder{
		document: &document{file: file, lines: map[string]int{}, broken: map[string]bool{}},
		retired:  retired,
	}
	d.value(root, reflect.ValueOf(target).Elem(), "")
	return d.document, d.problems
}

func (d *decoder) fail(node *yaml.Node, key, format string, args ...any) {
	if d.broken[key] {
		return
	}
	d.broken[key] = true
	d.problems = append(d.problems, Problem{
		File: d.file, Line: node.Line, Key: key, Text: redact.Text(fmt.Sprintf(format, args...)),
	})
}

// enter resolves an alias, and increments the depth. The caller must call leave to decrement it
// again. If the document is too large or nested too deeply, enter returns nil.
func (d *decoder) enter(node *yaml.Node, key string) *yaml.Node {
	d.depth++
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if d.depth > maxDepth {
		d.fail(node, key, "is nested deeper than %d levels", maxDepth)
		return nil
	}
	d.nodes++
	if d.nodes == maxNodes {
		d.fail(node, key, "the document contains more than %d values, "+
			"counting each use of an alias", maxNodes)
	}
	if d.nodes >= maxNodes {
		return nil
	}
	return node
}

func (d *decoder) leave() { d.depth-- }

// value decodes node into v, which must be settable.
func (d *decoder) value(node *yaml.Node, v reflect.Value, key string) {
	node = d.enter(node, key)
	defer d.leave()
	if node == nil || isNull(node) {
		return
	}
	if target, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		d.unmarshal(node, target, key)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(node, v.Elem(), key)
	case reflect.Struct:
		d.structure(node, v, key)
	case reflect.Map:
		d.mapping(node, v, key)
	case reflect.Slice:
		d.list(node, v, key)
	default:
		d.scalar(node, v, key)
	}
}

func (d *decoder) structure(node *yaml.Node, v reflect.Value, key string) {
	allowed := fields(v.Type())
	d.pairs(node, key, func(name, value *yaml.Node, path string) {
		for _, f := range allowed {
			if f.name == name.Value {
				d.value(value, v.FieldByIndex(f.index), path)
				return
			}
		}
		if d.retired[path] {
			if !isZero(d.free(value, path)) {
				d.set = append(d.set, path)
			}
			return
		}
		d.fail(name, path, "unknown key%s", suggestion(name.Value, allowed))
	})
}

func (d *decoder) mapping(node *yaml.Node, v reflect.Value, key string) {
	v.Set(reflect.MakeMap(v.Type()))
	d.pairs(node, key, func(name, value *yaml.Node, path string) {
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(value, element, path)
		v.SetMapIndex(reflect.ValueOf(name.Value).Convert(v.Type().Key()), element)
	})
}

func (d *decoder) list(node *yaml.Node, v reflect.Value, key string) {
	if node.Kind != yaml.SequenceNode {
		example := ""
		if node.Kind == yaml.ScalarNode {
			example = fmt.Sprintf("; write [%q]", node.Value)
		}
		d.fail(node, key, "is %s, must be a list%s", describe(node), example)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(node.Content), len(node.Content)))
	for i, item := range node.Content {
		path := fmt.Sprintf("%s[%d]", key, i)
		d.lines[path] = item.Line
		if isNull(item) {
			d.fail(item, path, "is empty; give it a value or remove it")
			continue
		}
		d.value(item, v.Index(i), path)
	}
}

// pairs calls visit for each key in a mapping. It skips and reports duplicate keys.
func (d *decoder) pairs(node *yaml.Node, key string,
	visit func(name, value *yaml.Node, path string)) {
	if node.Kind != yaml.MappingNode {
		d.fail(node, key, "is %s, must be a mapping", describe(node))
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		switch {
		case name.ShortTag() == "!!merge":
			d.fail(name, join(key, "<<"), "merge keys are not supported; write the keys out")
			continue
		case name.Kind != yaml.ScalarNode:
			d.fail(name, key, "has a key that is %s; a key must be a word", describe(name))
			continue
		}
		path := join(key, name.Value)
		if line, ok := first[name.Value]; ok {
			d.problems = append(d.problems, Problem{
				File: d.file, Line: name.Line, Key: path,
				Text: fmt.Sprintf("is set twice; the first is on line %d", line),
			})
			continue
		}
		first[name.Value] = name.Line
		d.lines[path] = name.Line
		visit(name, value, path)
	}
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
