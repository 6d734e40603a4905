package main

import (
	"bufio"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/slipway-platform/slipway/internal/coverage"
)

// titleWidth leaves space for six number columns in a line of 100 characters.
const titleWidth = 50

// writeText prints a section table for each document, and a table of all documents.
func writeText(out io.Writer, totals []coverage.DocumentTotal) error {
	w := bufio.NewWriter(out)
	for _, total := range totals {
		writeHeading(w, total.Document)
		for _, section := range total.Sections {
			writeCount(w, "  "+section.Section, section.Count)
		}
		fmt.Fprintln(w)
	}
	writeHeading(w, "all documents")
	for _, total := range totals {
		writeCount(w, "  "+total.Document, total.Count)
	}
	writeCount(w, "  total", coverage.Sum(totals))
	return w.Flush()
}

func writeHeading(w io.Writer, title string) {
	fmt.Fprintf(w, "%-*s", titleWidth, title)
	for _, state := range coverage.States() {
		fmt.Fprintf(w, " %*s", width(state), state)
	}
	fmt.Fprintf(w, " %6s\n", "rows")
}

func writeCount(w io.Writer, title string, count coverage.Count) {
	fmt.Fprintf(w, "%-*s", titleWidth, shorten(title, titleWidth))
	for _, state := range coverage.States() {
		fmt.Fprintf(w, " %*s", width(state), number(count[state]))
	}
	fmt.Fprintf(w, " %6d\n", count.Rows())
}

// width returns the width of a state's column, in characters.
func width(state coverage.State) int { return max(len(state), 6) }

// number formats a count. Zero is formatted as a dash, so that the other numbers stand out.
func number(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// shorten truncates a title to at most limit characters.
func shorten(title string, limit int) string {
	if utf8.RuneCountInString(title) <= limit {
		return title
	}
	return string([]rune(title)[:limit-1]) + "…"
}
