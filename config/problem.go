package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is an error in a configuration file.
type Problem struct {
	// File is the file's path.
	File string
	// Line is the line number, starting at 1. It is 0 if the problem concerns the whole file.
	Line int
	// Key is the path of the key, such as `networkConfig.clusterNetworks[0].cidr`. It is empty if
	// the problem concerns the whole document.
	Key string
	// Text describes the problem and, if it is not obvious, the remedy.
	Text string
}

// String returns `file:line: key: text`. It omits line and key if they are not set.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Problems contains all problems in a configuration, ordered by file and line.
type Problems []Problem

// Error returns one problem per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
	return p
}
