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

func TestPageHasPresentTotals(t *testing.T) {
	root := filepath.Join("..", "..")
	totals, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "coverage.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := replaceTotals(string(page), totals)
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

func TestReplaceTotalsKeepsTheRestOfThePage(t *testing.T) {
	page := "before\n" + begin + "\nold\n" + end + "\nafter\n"
	got, err := replaceTotals(page, sample[:1])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got, "before\n"+begin) || !strings.HasSuffix(got, end+"\nafter\n") {
		t.Errorf("text around the totals changed:\n%s", got)
	}
	if strings.Contains(got, "old") || !strings.Contains(got, "| Goals | 2 | - | - | - | - | 2 |\n") {
		t.Errorf("totals were not replaced:\n%s", got)
	}
	again, err := replaceTotals(got, sample[:1])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("replacing twice changed the page (-once +twice):\n%s", diff)
	}
}

func TestReplaceTotalsWantsBothMarkers(t *testing.T) {
	for _, page := range []string{"no markers", begin + " no end", end + begin} {
		if _, err := replaceTotals(page, sample); err == nil {
			t.Errorf("page %q: no error", page)
		}
	}
}
