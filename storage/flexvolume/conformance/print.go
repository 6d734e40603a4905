package conformance

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Print writes the report as a table of checks with results, findings and remedies. The table is
// followed by a table of operations with durations, and a summary line.
func (r Report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s, version %.12s, capabilities %s\n\n", r.Driver, r.Version, r.Capabilities)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CHECK\tRESULT\tWHAT THE DRIVER DID")
	for _, result := range r.Results {
		fmt.Fprintf(table, "%s\t%s\t%s\n", result.Check, result.Verdict, oneLine(result.Finding))
		if result.Remedy != "" {
			fmt.Fprintf(table, "\t\t-> %s\n", oneLine(result.Remedy))
		}
	}
	fmt.Fprintln(table, "\t\t")
	fmt.Fprintln(table, "OPERATION\tCALLS\tMEDIAN, LONGEST")
	for _, timing := range r.Timings {
		fmt.Fprintf(table, "%s\t%d\t%s, %s\n", timing.Operation, timing.Calls, milliseconds(timing.Median), milliseconds(timing.Max))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	_, err := fmt.Fprintf(out, "\n%s\n", r.Summary())
	if err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	return nil
}

// Summary returns a one-line report that begins with the verdict.
func (r Report) Summary() string {
	verdict := "works"
	switch r.Verdict() {
	case Wrong:
		verdict = "does not work (" + strings.Join(r.checks(Wrong), ", ") + ")"
	case Risk:
		verdict = "works, with these risks (" + strings.Join(r.checks(Risk), ", ") + ")"
	}
	return fmt.Sprintf("%s %s: %d ok, %d wrong, %d risks, %d not tried, in %.1f s (seed %d)",
		r.Driver, verdict, r.Count(OK), r.Count(Wrong), r.Count(Risk), r.Count(NotTried), r.Duration.Seconds(), r.Seed)
}

// oneLine replaces characters that would break the table.
func oneLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", " ", "\r", `\r`).Replace(text)
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// The elements of a JUnit file.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     float64     `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitMessage `xml:"failure,omitempty"`
		Skipped *junitMessage `xml:"skipped,omitempty"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report as a JUnit file. Wrong becomes a failure, NotTried becomes skipped, and
// Risk becomes a passed test with output.
func (r Report) JUnit(out io.Writer) error {
	suite := junitSuite{
		Name: r.Driver, Tests: len(r.Results), Failures: r.Count(Wrong), Skipped: r.Count(NotTried), Time: r.Duration.Seconds(),
	}
	for _, result := range r.Results {
		testCase := junitCase{Class: r.Driver, Name: result.Check}
		switch result.Verdict {
		case Wrong:
			testCase.Failure = &junitMessage{Message: result.Finding, Text: result.Remedy}
		case NotTried:
			testCase.Skipped = &junitMessage{Message: result.Finding}
		case Risk:
			testCase.Output = "risk: " + result.Finding + "\n" + result.Remedy
		case OK:
			testCase.Output = result.Finding
		}
		suite.Cases = append(suite.Cases, testCase)
	}
	encoded, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	if _, err := fmt.Fprintf(out, "%s%s\n", xml.Header, encoded); err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	return nil
}
