// Command gotest runs go test, prints its results, and records the time of every test. It also
// prints the records of several runs as one table.
//
// With -rerun, gotest runs each failed test again on its own. If the test passes in a rerun, gotest
// records and reports it as flaky.
//
//	go run ./hack/gotest -record bin/times/unit.json -rerun 3 -- -count=1 ./...
//	go run ./hack/gotest -report bin/times
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

func main() {
	record := flag.String("record", "", "file to write the times of this run to")
	report := flag.String("report", "", "print the records in this directory instead of running tests")
	limit := flag.Int("rerun", 0, "maximum number of failed tests that are run again")
	flag.Parse()
	if err := run(os.Stdout, *record, *report, *limit, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, record, report string, limit int, args []string) error {
	if report != "" {
		runs, err := readRecords(report)
		if err != nil {
			return err
		}
		writeReport(out, runs)
		return nil
	}
	if record == "" || len(args) == 0 {
		return fmt.Errorf("specify -record FILE and the arguments of go test, or -report DIRECTORY")
	}
	start := time.Now()
	results, testErr := test(out, args)
	if n := len(results.failed); testErr != nil && !results.broken && 0 < n && n <= limit {
		results.Flaky, testErr = rerun(out, results.failed, args)
	}
	results.Seconds = time.Since(start).Seconds()
	if err := writeRecord(record, results); err != nil {
		return err
	}
	return testErr
}

// test runs go test with args. It returns an error if go test could not run or a test failed.
func test(out io.Writer, args []string) (testRun, error) {
	command := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	command.Stderr = os.Stderr
	events, err := command.StdoutPipe()
	if err != nil {
		return testRun{}, err
	}
	if err := command.Start(); err != nil {
		return testRun{}, fmt.Errorf("start go test: %w", err)
	}
	results, readErr := readEvents(out, events)
	if err := command.Wait(); err != nil {
		return results, fmt.Errorf("run go test: %w", err)
	}
	return results, readErr
}
