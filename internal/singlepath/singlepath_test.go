package singlepath

import (
	"strings"
	"testing"
)

func TestParseRejectsExpressionsThatMultiply(t *testing.T) {
	for template, want := range map[string]string{
		`{.a.b[0]}`:                  "",
		`host={.host} port={.port}`:  "",
		`{.list[?(@.name=="a")].b}`:  "",
		`{..a}`:                      "descendants",
		`{.a.*}`:                     "wildcards",
		`{.a[0,0,0]}`:                "unions",
		`{range .a[0:]}{.b}{end}`:    "ranges",
		`{.list[?(@..a=="a")].b}`:    "descendants",
		`{.list[?(@.b.*=="a")]}`:     "wildcards",
		strings.Repeat("x", 1<<10+1): "the limit is 1024",
		`{.a`:                        "unclosed",
	} {
		_, err := Parse("test", template)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", template, err, want)
		}
	}
}
