package docs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandsAreParsedFromBlocks(t *testing.T) {
	page := "# Page\n\n```console\n$ first\nprinted\nmaster$ second \\\n    --more\nnode$ third\nfirst$ fourth\nthird$ fifth\n```\n\n```sh\n$ not this\n```\n"
	want := []step{{command: "first", output: []string{"printed"}}, {command: "second \\\n    --more"}, {host: "node", command: "third"}, {command: "fourth"}, {host: "third", command: "fifth"}}
	if diff := cmp.Diff(want, read(page), cmp.AllowUnexported(step{})); diff != "" {
		t.Error(diff)
	}
}

func TestOutputIsCompared(t *testing.T) {
	for name, tt := range map[string]struct {
		page   []string
		output string
		match  bool
	}{
		"not shown":        {nil, "anything\n", true},
		"same":             {[]string{"a b"}, "a b\n", true},
		"columns":          {[]string{"NAME  AGE"}, "NAME      AGE\n", true},
		"dots in a line":   {[]string{"up for ..."}, "up for 3s\n", true},
		"dots for lines":   {[]string{"a", "...", "z"}, "a\nb\nc\nz\n", true},
		"dots for no line": {[]string{"a", "...", "z"}, "a\nz\n", true},
		"another line":     {[]string{"a"}, "b\n", false},
		"additional line":  {[]string{"a"}, "a\nb\n", false},
		"line missing":     {[]string{"a", "b"}, "a\n", false},
		"part of a line":   {[]string{"a"}, "ab\n", false},
		"dot is literal":   {[]string{"1.5"}, "125\n", false},
		"words reordered":  {[]string{"a b"}, "b a\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (step{output: tt.page}).matches(tt.output); got != tt.match {
				t.Errorf("got %t, want %t", got, tt.match)
			}
		})
	}
}

func TestAbbreviatedOutputIsNotComplete(t *testing.T) {
	for name, tt := range map[string]struct {
		page []string
		want bool
	}{
		"not shown":      {nil, false},
		"dots for lines": {[]string{"..."}, false},
		"dots in a line": {[]string{"up for ..."}, false},
		"all shown":      {[]string{"error: no such host"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (step{output: tt.page}).isComplete(); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
