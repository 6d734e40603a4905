package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// rerun runs failed tests again, one after another, with the flags in args but without the packages
// in args. It returns the tests that now pass. It returns an error if a test failed again.
func rerun(out io.Writer, failed []testName, args []string) ([]testName, error) {
	var flaky []testName
	for _, name := range failed {
		fmt.Fprintf(out, "\nrunning again: %s\n", name)
		if _, err := test(out, rerunArgs(name, args)); err != nil {
			return flaky, fmt.Errorf("%s failed twice: %w", name, err)
		}
		flaky = append(flaky, name)
		fmt.Fprintf(out, "FLAKY: %s failed and then passed; find the cause\n", name)
	}
	return flaky, nil
}

// rerunArgs returns the arguments that run a single test. It omits the packages in args, and keeps
// flags with their values.
func rerunArgs(name testName, args []string) []string {
	rerun := []string{"-count=1", "-run", "^" + regexp.QuoteMeta(name.Test) + "$"}
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") {
			continue // skip packages, because name identifies the package
		}
		rerun = append(rerun, args[i])
		if (args[i] == "-p" || args[i] == "-timeout") && i+1 < len(args) {
			i++
			rerun = append(rerun, args[i])
		}
	}
	return append(rerun, name.Package)
}
