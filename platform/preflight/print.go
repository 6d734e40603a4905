package preflight

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// width is the maximum width of a printed problem, in columns.
const width = 100

// errFailed is the error that is returned after problems have been printed.
var errFailed = errors.New("this machine is not ready for a cluster: fix the problems above and run the command again")

// Report prints all problems. It returns an error if a problem prevents the host from working.
func Report(out io.Writer, problems []Problem) error {
	if err := Print(out, problems); err != nil {
		return fmt.Errorf("print machine problems: %w", err)
	}
	if Failed(problems) {
		return errFailed
	}
	return nil
}

// Failed reports whether any problem prevents the host from working.
func Failed(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == Error })
}

// Print writes the problems as a table that is at most 100 characters wide. Each row contains
// severity, subject and text, followed by the remedy on the next lines. Consecutive problems with
// the same remedy share it. Print does not wrap commands, so that users can copy them.
func Print(out io.Writer, problems []Problem) error {
	subjects := 0
	for _, problem := range problems {
		subjects = max(subjects, utf8.RuneCountInString(problem.Subject))
	}
	var text strings.Builder
	for i, problem := range problems {
		head := fmt.Sprintf("%-7s  %-*s  ", problem.Severity, subjects, problem.Subject)
		indent := strings.Repeat(" ", utf8.RuneCountInString(head))
		for n, line := range wrap(problem.Text, width-len(indent)) {
			if n > 0 {
				head = indent
			}
			text.WriteString(head + line + "\n")
		}
		if last := i == len(problems)-1; last || problems[i+1].Remedy != problem.Remedy {
			for n, line := range strings.Split(problem.Remedy, "\n") {
				lead := "         "
				if n == 0 {
					lead += " fix it: "
				} else {
					lead += "     or: "
				}
				text.WriteString(lead + line + "\n")
			}
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// wrap breaks text between words into lines of at most the given number of columns.
func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
