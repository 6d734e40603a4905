package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/internal/coverage"
)

func TestPageHasCurrentTotals(t *testing.T) {
	root := filepath.Join("..", "..")
	totals, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "coverage.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := section.Replace(string(page), tables(totals))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("docs/coverage.md is not current: run `go run ./hack/coverage --markdown` (-want +got):\n%s", diff)
	}
}

var sample = []coverage.DocumentTotal{{
	Document: "csi",
	Count:    coverage.Count{coverage.Works: 2, coverage.Open: 1000},
	Sections: []coverage.SectionTotal{
		{Section: "Goals", Count: coverage.Count{coverage.Works: 2}},
		{Section: strings.Repeat("Überschrift ", 9), Count: coverage.Count{coverage.Open: 1000}},
	},
}}

func TestTextFitsHundredColumns(t *testing.T) {
	var out strings.Builder
	if err := writeText(&out, sample); err != nil {
		t.Fatal(err)
	}
	want := `
csi                                                 works partial kubernetes retired   open   rows
  Goals                                                 2       -          -       -      -      2
  Überschrift Überschrift Überschrift Überschrift…      -       -          -       -   1000   1000

all documents                                       works partial kubernetes retired   open   rows
  csi                                                   2       -          -       -   1000   1002
  total                                                 2       -          -       -   1000   1002
`
	if diff := cmp.Diff(want[1:], out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("line has %d characters: %s", n, line)
		}
	}
}

func TestTablesCountRows(t *testing.T) {
	if got := tables(sample[:1]); !strings.Contains(got, "\n### csi\n") || !strings.Contains(got, "| Goals | 2 | - | - | - | - | 2 |\n") {
		t.Errorf("tables are:\n%s", got)
	}
}
