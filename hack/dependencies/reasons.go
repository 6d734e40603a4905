package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/markdown"
)

// section is the part of docs/dependencies.md that contains the tables.
var section = markdown.Section{
	Begin: "<!-- tables: written by `go run ./hack/dependencies` -->",
	End:   "<!-- end of tables -->",
}

// reason contains a module's row in docs/dependencies.tsv.
type reason struct{ owner, text string }

// readReasons reads tab-separated rows of module, owner and reason. It returns the rows, keyed by
// module.
func readReasons(path string) (map[string]reason, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reasons := map[string]reason{}
	number := 0
	for line := range strings.Lines(string(data)) {
		if number++; strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) != 3 || slices.Contains(columns, "") {
			return nil, fmt.Errorf("%s:%d: a row is a module, its owner and the reason for it, with a tab between them", path, number)
		}
		if _, twice := reasons[columns[0]]; twice {
			return nil, fmt.Errorf("%s:%d: %s has two rows", path, number, columns[0])
		}
		reasons[columns[0]] = reason{columns[1], columns[2]}
	}
	return reasons, nil
}

// checkReasons returns errors for direct modules without a row, and for rows without a direct
// module.
func checkReasons(reasons map[string]reason, direct []dependency) error {
	var problems []error
	for _, d := range direct {
		if _, ok := reasons[d.Path]; !ok {
			problems = append(problems, fmt.Errorf("%s: go.mod requires it; add its owner and the reason to docs/dependencies.tsv", d.Path))
		}
	}
	for path := range reasons {
		if !strings.HasPrefix(path, npmPrefix) && !slices.ContainsFunc(direct, func(d dependency) bool { return d.Path == path }) {
			problems = append(problems, fmt.Errorf("%s: go.mod doesn't require it directly; remove its row from docs/dependencies.tsv", path))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}

// tables returns a table of direct dependencies and a table of all linked modules.
func tables(reasons map[string]reason, direct, linked []dependency) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Required by this repository (%d)\n\n", len(direct))
	b.WriteString("| module | version | released | license | owner | why |\n|---|---|---|---|---|---|\n")
	for _, d := range direct {
		d = d.withUse()
		released := ""
		if !d.Time.IsZero() {
			released = d.Time.UTC().Format("2006-01-02")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n",
			d.Path, d.Version, released, strings.Join(d.licenses(), ", "), reasons[d.Path].owner, reasons[d.Path].text)
	}
	fmt.Fprintf(&b, "\n## Linked into a program (%d)\n\n", len(linked))
	b.WriteString("| module | version | license | programs |\n|---|---|---|---|\n")
	for _, d := range linked {
		license := strings.Join(d.licenses(), ", ")
		if e, ok := exceptions[d.Path]; ok {
			license += ": " + e.reason
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", d.Path, d.Version, license, strings.Join(d.programs, ", "))
	}
	return b.String()
}
