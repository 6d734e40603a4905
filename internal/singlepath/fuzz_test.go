package singlepath

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzParse verifies that an expression's result is not larger than its template and input.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{.a.b[0]}`, `host={.a} {.list[?(@.b=="x")].b}`, `{..a}`, `{.list[*]}`, `{range .list[*]}{.b}{end}`, `{$}`, `{`, `{.list[0:]}`, `{.a['b','b']}`} {
		f.Add(seed)
	}
	long := strings.Repeat("x", 1000)
	input := map[string]any{"a": map[string]any{"b": []any{long}}, "list": []any{map[string]any{"b": "x", "c": long}, map[string]any{"b": "x"}}}
	const size = 2500 // size of input as text
	f.Fuzz(func(t *testing.T, template string) {
		expression, err := Parse("value", template)
		if err != nil {
			return
		}
		var result bytes.Buffer
		if err := expression.Execute(&result, input); err != nil {
			return
		}
		// Each expression in braces can print the input once.
		if most := len(template) + size*strings.Count(template, "{"); result.Len() > most {
			t.Errorf("%q gives %d bytes, want at most %d", template, result.Len(), most)
		}
	})
}
