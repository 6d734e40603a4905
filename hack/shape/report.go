package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// report prints a block for each package, followed by the totals.
func report(w io.Writer, shapes []shape) {
	var code, test int
	fmt.Fprintf(w, "%6s %6s  package\n", "code", "test")
	for _, s := range shapes {
		code, test = code+s.code, test+s.test
		fmt.Fprintf(w, "%6d %6d  %s\n", s.code, s.test, s.folder)
		if s.purpose == "" {
			s.purpose = "(no doc comment)"
		}
		writeWrapped(w, s.purpose)
		if len(s.imports) > 0 {
			writeWrapped(w, "imports "+strings.Join(s.imports, ", "))
		}
		if s.problem != "" {
			writeWrapped(w, "does not build: "+s.problem)
		}
	}
	fmt.Fprintf(w, "%6d %6d  in %d packages; lines with code, without comments and blank lines\n", code, test, len(shapes))
}

// writeWrapped prints text below its package's name, in lines of at most 100 characters.
func writeWrapped(w io.Writer, text string) {
	const indent, width = "               ", 100
	line := indent
	for word := range strings.FieldsSeq(text) {
		if line != indent && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			fmt.Fprintln(w, line)
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}
