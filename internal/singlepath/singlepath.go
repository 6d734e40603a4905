// Package singlepath reads JSONPath templates that users write and the platform evaluates. An
// expression such as {..a..a..a} selects the same values many times, so a few characters can use up
// all memory. The package accepts only expressions that cannot do this.
package singlepath

import (
	"errors"
	"fmt"

	"k8s.io/client-go/util/jsonpath"
)

// MaxLength is the maximum length of a template, in bytes.
const MaxLength = 1024

// Parse parses a template. It returns an error for a template that is too long, or whose result can
// be larger than the input.
func Parse(name, template string) (*jsonpath.JSONPath, error) {
	if len(template) > MaxLength {
		return nil, fmt.Errorf("parse JSONPath: it has %d characters, the limit is %d", len(template), MaxLength)
	}
	parsed, err := jsonpath.Parse(name, template)
	if err != nil {
		return nil, fmt.Errorf("parse JSONPath: %w", err)
	}
	if err := cheap(parsed.Root); err != nil {
		return nil, fmt.Errorf("parse JSONPath: %w", err)
	}
	path := jsonpath.New(name)
	if err := path.Parse(template); err != nil {
		return nil, fmt.Errorf("parse JSONPath: %w", err)
	}
	return path, nil
}

// cheap returns an error if the list contains a node that can select many values, such as a
// wildcard or a recursive descent. The evaluation of such a node can be expensive.
func cheap(list *jsonpath.ListNode) error {
	for _, node := range list.Nodes {
		var below []*jsonpath.ListNode
		switch typed := node.(type) {
		case *jsonpath.ListNode:
			below = []*jsonpath.ListNode{typed}
		case *jsonpath.FilterNode:
			below = []*jsonpath.ListNode{typed.Left, typed.Right}
		case *jsonpath.RecursiveNode, *jsonpath.WildcardNode, *jsonpath.UnionNode, *jsonpath.IdentifierNode:
			return errors.New("only fields, elements by index and elements that match a condition can be used, " +
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
