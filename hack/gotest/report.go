package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Limits of the report.
const (
	maxTests       = 10
	minSeconds     = 1 // shorter packages are combined in one line
	modulePrefix   = "github.com/slipway-platform/slipway/"
	recordFileMode = 0o644
)

// writeRecord writes a run's times to a file. It creates the file's directory.
func writeRecord(path string, run testRun) error {
	content, err := json.Marshal(run)
	if err != nil {
		return fmt.Errorf("encode times: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create times directory: %w", err)
	}
	if err := os.WriteFile(path, append(content, '\n'), recordFileMode); err != nil {
		return fmt.Errorf("write times: %w", err)
	}
	return nil
}

// readRecords reads all records in a directory. The key is the file name without .json.
func readRecords(dir string) (map[string]testRun, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("read times: %q contains no file: run make test", dir)
	}
	runs := map[string]testRun{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read times: %w", err)
		}
		var run testRun
		if err := json.Unmarshal(content, &run); err != nil {
			return nil, fmt.Errorf("read times %q: %w", path, err)
		}
		runs[strings.TrimSuffix(filepath.Base(path), ".json")] = run
	}
	return runs, nil
}

// writeReport prints the times of runs and packages, longest first, and lists the slowest tests.
func writeReport(w io.Writer, runs map[string]testRun) {
	var total float64
	var packages, tests, phases []elapsed
	var flaky []testName
	for name, run := range runs {
		phases = append(phases, elapsed{Package: name, Seconds: run.Seconds})
		total += run.Seconds
		flaky = append(flaky, run.Flaky...)
		for _, t := range run.Times {
			if t.Package = strings.TrimPrefix(t.Package, modulePrefix); t.Test == "" {
				packages = append(packages, t)
			} else {
				tests = append(tests, t)
			}
		}
	}
	longestFirst := func(a, b elapsed) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), strings.Compare(a.Package, b.Package))
	}
	for _, times := range [][]elapsed{phases, packages, tests} {
		slices.SortFunc(times, longestFirst)
	}

	fmt.Fprintf(w, "\nTime of the tests: %.0f s\n", total)
	for _, p := range phases {
		fmt.Fprintf(w, "%8.1f s  %s\n", p.Seconds, p.Package)
	}
	fmt.Fprintf(w, "\nTime by package (packages can run at the same time)\n")
	short, shortSeconds := 0, 0.0
	for _, p := range packages {
		if p.Seconds < minSeconds {
			short, shortSeconds = short+1, shortSeconds+p.Seconds
			continue
		}
		fmt.Fprintf(w, "%8.1f s  %s\n", p.Seconds, p.Package)
	}
	fmt.Fprintf(w, "%8.1f s  %d packages of less than %d s each\n", shortSeconds, short, minSeconds)
	fmt.Fprintf(w, "\nSlowest tests\n")
	for _, t := range tests[:min(len(tests), maxTests)] {
		fmt.Fprintf(w, "%8.1f s  %s %s\n", t.Seconds, t.Package, t.Test)
	}
	if len(flaky) > 0 {
		fmt.Fprintf(w, "\nFlaky tests, which failed and then passed\n")
	}
	for _, name := range flaky {
		fmt.Fprintf(w, "            %s\n", name)
	}
}
