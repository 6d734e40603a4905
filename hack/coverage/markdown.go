package main

import (
	"fmt"
	"strings"

	"github.com/slipway-platform/slipway/internal/coverage"
	"github.com/slipway-platform/slipway/internal/markdown"
)

// section is the part of docs/coverage.md that contains the totals.
var section = markdown.Section{
	Begin: "<!-- totals: written by `go run ./hack/coverage --markdown` -->",
	End:   "<!-- end of totals -->",
}

// tables returns a table of all documents and, for each document, a table of its sections.
func tables(totals []coverage.DocumentTotal) string {
	var b strings.Builder
	writeTableHead(&b, "document")
	for _, total := range totals {
		writeTableRow(&b, total.Document, total.Count)
	}
	writeTableRow(&b, "**total**", coverage.Sum(totals))
	for _, total := range totals {
		fmt.Fprintf(&b, "\n### %s\n\n", total.Document)
		writeTableHead(&b, "section")
		for _, section := range total.Sections {
			writeTableRow(&b, section.Section, section.Count)
		}
	}
	return b.String()
}

func writeTableHead(b *strings.Builder, title string) {
	fmt.Fprintf(b, "| %s |", title)
	for _, state := range coverage.States() {
		fmt.Fprintf(b, " %s |", state)
	}
	fmt.Fprintf(b, " rows |\n|---|%s\n", strings.Repeat("--:|", len(coverage.States())+1))
}

func writeTableRow(b *strings.Builder, title string, count coverage.Count) {
	fmt.Fprintf(b, "| %s |", strings.ReplaceAll(title, "|", `\|`))
	for _, state := range coverage.States() {
		fmt.Fprintf(b, " %s |", number(count[state]))
	}
	fmt.Fprintf(b, " %d |\n", count.Rows())
}
