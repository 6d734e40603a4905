package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/markdown"
)

// section is the part of docs/soak.md that contains the table.
var section = markdown.Section{
	Begin: "<!-- results: written by `make soak` -->",
	End:   "<!-- end of results -->",
}

// write updates the table in a file. It keeps the rows for targets that did not run.
func write(file string, results []result) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	return section.Write(file, table(rows(string(page)), results))
}

// rows returns a page's table rows, keyed by target.
func rows(page string) map[string]string {
	byTarget := map[string]string{}
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "`"); strings.HasPrefix(line, "| `") && len(cells) == 3 {
			byTarget[cells[1]] = line
		}
	}
	return byTarget
}

// table returns a table with the previous rows and the results, sorted by target.
func table(byTarget map[string]string, results []result) string {
	for _, r := range results {
		byTarget[r.target.String()] = fmt.Sprintf("| `%s` | %s | %d | %d | %s |\n",
			r.target, r.duration.Round(time.Second), r.executions, r.inputs, cmp.Or(r.finding, "none"))
	}
	lines := make([]string, 0, len(byTarget))
	for _, line := range byTarget {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return "| target | time | executions | inputs | findings |\n|---|--:|--:|--:|---|\n" + strings.Join(lines, "")
}
