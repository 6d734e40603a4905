package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseFile returns the root of each non-empty YAML document in a file.
func parseFile(path string) ([]*yaml.Node, Problems) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, Problems{unreadable(path, err)}
	}
	roots, err := parse(data)
	if err != nil {
		return roots, Problems{syntaxProblem(path, err)}
	}
	return roots, nil
}

// unreadable converts an error from os.ReadFile to a problem.
func unreadable(path string, err error) Problem {
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		err = pathError.Err
	}
	return Problem{File: path, Text: fmt.Sprintf("cannot be read: %v", err)}
}

func parse(data []byte) ([]*yaml.Node, error) {
	var roots []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var document yaml.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return roots, nil
		} else if err != nil {
			return roots, err
		}
		if len(document.Content) == 0 || document.Content[0].ShortTag() == "!!null" {
			continue
		}
		roots = append(roots, document.Content[0])
	}
}

// syntaxProblem converts the parser's error, such as `yaml: line 3: did not find ...`, to a
// problem.
func syntaxProblem(path string, err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	problem := Problem{File: path}
	if match := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); match != nil {
		problem.Line, _ = strconv.Atoi(match[1])
		text = strings.TrimPrefix(text, match[0])
	}
	problem.Text = "not valid YAML: " + text
	return problem
}

// kindOf returns a document's kind. It returns a problem if the version is not v1 or if the kind is
// not in kinds.
func kindOf(path string, root *yaml.Node, kinds []string) (string, *Problem) {
	if root.Kind != yaml.MappingNode {
		return "", &Problem{File: path, Line: root.Line, Text: "is " + describe(root) + ", must be a mapping with kind: " + strings.Join(kinds, " or ")}
	}
	kind, version := field(root, "kind"), field(root, "apiVersion")
	if kind == nil {
		return "", &Problem{File: path, Line: root.Line, Key: "kind", Text: "is missing; write kind: " + strings.Join(kinds, " or ")}
	}
	if !slices.Contains(kinds, kind.Value) {
		return "", &Problem{File: path, Line: kind.Line, Key: "kind", Text: fmt.Sprintf("is %q, must be %s", kind.Value, strings.Join(kinds, " or "))}
	}
	if version == nil {
		return "", &Problem{File: path, Line: root.Line, Key: "apiVersion", Text: "is missing; write apiVersion: v1"}
	}
	if version.Value != "v1" {
		return "", &Problem{File: path, Line: version.Line, Key: "apiVersion", Text: fmt.Sprintf("is %q, must be v1", version.Value)}
	}
	return kind.Value, nil
}

// field returns the value of a key in a mapping, or nil if the key is missing.
func field(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
