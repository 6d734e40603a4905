package repocheck

import (
	"go/ast"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Limits on the width of comments and on the length of table cells.
const (
	maxColumns   = 100 // maximum width of a line with a comment; a tab is one column
	maxCellWords = 25  // maximum number of words in a table cell
)

// checkCommentWidth finds comment lines that are too long. Lines that cannot be wrapped are exempt:
// directives such as //go:embed, preformatted lines, and lines that consist of one long word such
// as an address. Generated files are also exempt.
func checkCommentWidth(t *tree) (violations findings) {
	t.goFiles(func(f file) {
		if ast.IsGenerated(f.syntax) {
			return
		}
		lines := strings.Split(f.text, "\n")
		for _, group := range f.syntax.Comments {
			for _, comment := range group.List {
				first := f.line(comment)
				for number := first; number <= first+strings.Count(comment.Text, "\n"); number++ {
					line := lines[number-1]
					width := utf8.RuneCountInString(line)
					if width > maxColumns && !directive.MatchString(line) && !unwrappable.MatchString(line) {
						violations.add(f.path, number, "comment of %d columns, limit %d: wrap it", width, maxColumns)
					}
				}
			}
		}
	})
	return violations
}

var (
	directive   = regexp.MustCompile(`//(?:go:|nolint|line |export )`)
	unwrappable = regexp.MustCompile(`^\s*//(?:\t.*|\s*\S+)$`)
)

// checkTableCells finds table cells in documents that contain too many words. Generated pages are
// exempt, because their cells come from the tables that the pages are generated from.
func checkTableCells(t *tree) (violations findings) {
	for _, f := range t.files {
		if path.Ext(f.path) != ".md" {
			continue
		}
		number := 0
		for line := range strings.Lines(withoutCodeBlocks(f.text)) {
			number++
			row, ok := strings.CutPrefix(strings.TrimSpace(line), "|")
			if !ok {
				continue
			}
			for cell := range strings.SplitSeq(strings.TrimSuffix(row, "|"), "|") {
				if words := len(strings.Fields(cell)); words > maxCellWords {
					violations.add(f.path, number, "cell of %d words (%s ...), limit %d: shorten it or write a paragraph",
						words, firstWords(cell), maxCellWords)
				}
			}
		}
	}
	return violations
}

var codeBlock = regexp.MustCompile("(?ms:^```.*?^```)")

// withoutCodeBlocks removes the text in code blocks and keeps their line breaks.
func withoutCodeBlocks(markdown string) string {
	return codeBlock.ReplaceAllStringFunc(markdown, func(block string) string {
		return strings.Repeat("\n", strings.Count(block, "\n"))
	})
}
