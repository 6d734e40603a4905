package template

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	templatev1 "github.com/openshift/api/template/v1"
)

// stdin is the file name of standard input.
const stdin = "-"

// Values parses NAME=VALUE pairs, and files that contain one pair in each line. In files, it
// ignores empty lines and comments, which start with #. Pairs take precedence over files. Values
// prints a warning about each value that it ignores. kind is the noun that messages use for a pair,
// such as "parameter".
func Values(kind string, pairs, files []string, in io.Reader, warnings io.Writer) (map[string]string, error) {
	values := map[string]string{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("invalid parameter assignment in %s %q: must be NAME=VALUE", kind, pair)
		}
		if old, ok := values[name]; ok && old != value {
			fmt.Fprintf(warnings, "warning: %s %q is set several times, using the first value\n", kind, name)
			continue
		}
		values[name] = value
	}
	for _, file := range files {
		of, err := readValues(file, in)
		if err != nil {
			return nil, err
		}
		for name, value := range of {
			if _, ok := values[name]; ok {
				fmt.Fprintf(warnings, "warning: %s %q already defined, ignoring value from file %q\n", kind, name, file)
				continue
			}
			values[name] = value
		}
	}
	return values, nil
}

func readValues(file string, in io.Reader) (map[string]string, error) {
	if file != stdin {
		opened, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read values: %w", err)
		}
		defer opened.Close()
		in = opened
	}
	values, lines := map[string]string{}, bufio.NewScanner(in)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if name = strings.TrimSpace(name); !ok || !isName(name) {
			return nil, fmt.Errorf("read values of %q: line %d: invalid parameter assignment, must be NAME=VALUE", file, number)
		}
		values[name] = unquote(strings.TrimSpace(value))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read values of %q: %w", file, err)
	}
	return values, nil
}

// isName reports whether text contains only characters that are allowed in parameter and variable
// names.
func isName(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) < 0
}

// unquote removes the quotation marks around a value. As in OpenShift 3, \n in double quotes is a
// newline.
func unquote(value string) string {
	if last := len(value) - 1; last > 0 && value[0] == '"' && value[last] == '"' {
		return strings.ReplaceAll(value[1:last], `\n`, "\n")
	}
	if last := len(value) - 1; last > 0 && (value[0] == '"' || value[0] == '\'') && value[last] == value[0] {
		return value[1:last]
	}
	return value
}

// Fill sets a template's parameters. If unknown is false, it returns an error for a value that
// belongs to no parameter.
func Fill(template *templatev1.Template, values map[string]string, unknown bool) error {
	names := map[string]bool{}
	for i := range template.Parameters {
		parameter := &template.Parameters[i]
		names[parameter.Name] = true
		if value, ok := values[parameter.Name]; ok {
			parameter.Value, parameter.Generate = value, ""
		}
	}
	var strange []string
	for name := range values {
		if !names[name] {
			strange = append(strange, fmt.Sprintf("unknown parameter name %q", name))
		}
	}
	if len(strange) == 0 || unknown {
		return nil
	}
	slices.Sort(strange)
	return errors.New(strings.Join(strange, "\n"))
}
