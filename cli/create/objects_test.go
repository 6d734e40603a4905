package create

import (
	"maps"
	"strings"
	"testing"
)

func TestAnnotationSelectorQuotesCommas(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                   {},
		"a/b=c":              {"a/b": "c"},
		`a=b,"d=yes,true,1"`: {"a": "b", "d": "yes,true,1"},
	} {
		if got, err := annotationSelector(text); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"a=b,novalue", "=b", `"a=b`} {
		if _, err := annotationSelector(text); err == nil || !strings.Contains(err.Error(), "selector") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
