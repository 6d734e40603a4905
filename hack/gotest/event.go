package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of output from `go test -json`.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// testRun contains the times, in seconds, and the failures of a go test run.
type testRun struct {
	Seconds float64
	Times   []elapsed
	// Flaky lists the tests that failed but passed when they were run again.
	Flaky []testName `json:",omitempty"`

	failed []testName
	// broken means that a package failed although none of its tests failed: either it did not
	// compile, or a check after its tests failed.
	broken bool
}

// testName identifies a top-level test.
type testName struct {
	Package, Test string
}

// String returns the package and the test in the format of the report.
func (n testName) String() string {
	return strings.TrimPrefix(n.Package, modulePrefix) + " " + n.Test
}

// elapsed is the time that a test took, or that a package took if Test is empty.
type elapsed struct {
	Package, Test string
	Seconds       float64
}

// readEvents prints events as go test without -v does: one line for each package, and the output of
// failing tests and packages. It returns the times of packages and top-level tests.
func readEvents(out io.Writer, events io.Reader) (testRun, error) {
	var run testRun
	outputs := map[[2]string][]string{} // by package and test
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) != nil {
			_, _ = out.Write(line)
		}
		key := [2]string{e.Package, e.Test}
		switch e.Action {
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "output":
			outputs[key] = append(outputs[key], e.Output)
		case "fail":
			fmt.Fprint(out, strings.Join(outputs[key], ""))
			run.add(e)
		case "pass", "skip":
			if e.Test == "" {
				writeLast(out, outputs[key])
			}
			run.add(e)
		}
		if errors.Is(err, io.EOF) {
			return run, nil
		}
		if err != nil {
			return run, fmt.Errorf("read the output of go test: %w", err)
		}
		if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
			delete(outputs, key)
		}
	}
}

// add records the time and failure of a package or top-level test. A test's time includes its
// subtests. A package's event follows the events of the package's tests.
func (r *testRun) add(e event) {
	if strings.Contains(e.Test, "/") {
		return
	}
	r.Times = append(r.Times, elapsed{e.Package, e.Test, e.Elapsed})
	if e.Action != "fail" {
		return
	}
	if e.Test != "" {
		r.failed = append(r.failed, testName{e.Package, e.Test})
	} else if !slices.ContainsFunc(r.failed, func(n testName) bool { return n.Package == e.Package }) {
		r.broken = true
	}
}

// writeLast prints the last line of a package's output, which is the package's result.
func writeLast(out io.Writer, lines []string) {
	text := bytes.TrimSpace([]byte(strings.Join(lines, "")))
	fmt.Fprintf(out, "%s\n", text[bytes.LastIndexByte(text, '\n')+1:])
}
