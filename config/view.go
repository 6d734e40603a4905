package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-platform/slipway/internal/redact"
)

// View returns the effective configuration as two YAML documents, MasterConfig and NodeConfig. View
// writes keys in the order of the types' fields, omits empty keys, and replaces secrets with
// `<redacted>`.
func (c *Config) View() ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for _, part := range []struct {
		kind     string
		value    any
		document *document
	}{{masterKind, *c.Master, c.master}, {nodeKind, *c.Node, c.node}} {
		node, err := encode(reflect.ValueOf(part.value))
		if err != nil {
			return nil, fmt.Errorf("show %s: %w", part.kind, err)
		}
		hide(node)
		node.HeadComment = "Only defaults."
		if part.document.lines != nil {
			node.HeadComment = "From " + part.document.file + " and defaults."
		}
		if err := encoder.Encode(node); err != nil {
			return nil, fmt.Errorf("show %s: %w", part.kind, err)
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("show configuration: %w", err)
	}
	return out.Bytes(), nil
}

// encode returns the YAML of a value with JSON tags. It omits struct fields that are zero, but it
// keeps a pointer to a zero value.
func encode(v reflect.Value) (*yaml.Node, error) {
	if marshaler, ok := v.Interface().(json.Marshaler); ok && v.Kind() != reflect.Pointer {
		return encodeJSON(marshaler)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
		}
		return encode(v.Elem())
	case reflect.Struct:
		return encodeStruct(v)
	case reflect.Map:
		return encodeMap(v)
	case reflect.Slice:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			item, err := encode(v.Index(i))
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, item)
		}
		return list, nil
	}
	node := &yaml.Node{}
	return node, node.Encode(v.Interface())
}

func encodeStruct(v reflect.Value) (*yaml.Node, error) {
	mapping := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fields(v.Type()) {
		value := v.FieldByIndex(f.index)
		if value.IsZero() {
			continue
		}
		node, err := encode(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if value.Kind() != reflect.Pointer && node.Kind != yaml.ScalarNode && len(node.Content) == 0 {
			continue
		}
		mapping.Content = append(mapping.Content, word(f.name), node)
	}
	return mapping, nil
}

func encodeMap(v reflect.Value) (*yaml.Node, error) {
	mapping := &yaml.Node{Kind: yaml.MappingNode}
	names := v.MapKeys()
	slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range names {
		node, err := encode(v.MapIndex(name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		mapping.Content = append(mapping.Content, word(name.String()), node)
	}
	return mapping, nil
}

func encodeJSON(value json.Marshaler) (*yaml.Node, error) {
	data, err := value.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	node := document.Content[0]
	plain(node)
	return node, nil
}

// plain sets the block style on YAML nodes that were parsed from JSON.
func plain(node *yaml.Node) {
	node.Style = 0
	if _, ok := booleanWord(node.Value); ok && node.ShortTag() == "!!str" {
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		plain(child)
	}
}

func word(text string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(text)
	if _, ok := booleanWord(text); ok {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// secretName matches the names of settings, plugin parameters and environment variables that
// contain secrets.
var secretName = regexp.MustCompile(`(?i)(password|passwd|secret|token|secretkey|apikey|passphrase)$`)

// hide replaces the values of keys whose names denote secrets. It also replaces secrets inside
// other values: passwords in URLs and private keys. In OpenShift's long form of a secret, it keeps
// the keys that identify the source (env, file, keyFile). An environment variable is a secret if
// its name denotes a secret.
func hide(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!str" {
		if text := redact.Text(node.Value); text != node.Value {
			node.SetString(text)
			node.Style = 0
		}
	}
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		variable := field(node, "name")
		isVariable := name.Value == "value" && variable != nil && secretName.MatchString(variable.Value)
		if !secretName.MatchString(name.Value) && !isVariable {
			continue
		}
		if value.Kind == yaml.MappingNode {
			value = field(value, "value")
		}
		if value != nil && value.Kind == yaml.ScalarNode && value.Value != "" && value.ShortTag() == "!!str" {
			value.SetString(redact.Mark)
			value.Style = 0
		}
	}
	for _, child := range node.Content {
		hide(child)
	}
}
