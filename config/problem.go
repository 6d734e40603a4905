package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a configuration file.
type Problem struct {
	// File is the file's path.
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Key is the path of the key, such as `networkConfig.clusterNetworks[0].cidr`; empty for the whole document.
	Key string
	// Text says what is wrong and, where that is not obvious, what mends it.
	Text string
}

// String is `file:line: key: text`, without the parts that are not known.
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

// Problems are all that is wrong with a configuration, ordered by file and line.
type Problems []Problem

// Error has one problem a line.
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
