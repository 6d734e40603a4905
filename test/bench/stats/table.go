package stats

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Table is a heading and rows with the same number of cells. The first column is text, and all
// other columns are numbers.
type Table struct {
	Heading []string
	Rows    [][]string
}

// Text formats the table as plain text, with two spaces between columns.
func (t Table) Text() string {
	widths := make([]int, len(t.Heading))
	all := slices.Concat([][]string{t.Heading}, t.Rows)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + padding)
				continue
			}
			line.WriteString("  " + padding + cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// Markdown formats the table in Markdown.
func (t Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.Heading)
	rule := []string{"---"}
	for range t.Heading[1:] {
		rule = append(rule, "---:")
	}
	line(rule)
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}
