package main

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// table is a heading and rows of as many cells. The first column is text, the others are numbers.
type table struct {
	heading []string
	rows    [][]string
}

// text draws the table with columns two blanks apart.
func (t table) text() string {
	widths := make([]int, len(t.heading))
	all := slices.Concat([][]string{t.heading}, t.rows)
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

// markdown draws the table in Markdown.
func (t table) markdown() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.heading)
	rule := []string{"---"}
	for range t.heading[1:] {
		rule = append(rule, "---:")
	}
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
	return b.String()
}
