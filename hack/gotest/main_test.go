package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const events = `{"Action":"start","Package":"example.com/a"}
{"Action":"run","Package":"example.com/a","Test":"TestFast"}
{"Action":"output","Package":"example.com/a","Test":"TestFast","Output":"=== RUN   TestFast\n"}
{"Action":"output","Package":"example.com/a","Test":"TestFast/case","Output":"a log line of a passing test\n"}
{"Action":"pass","Package":"example.com/a","Test":"TestFast/case","Elapsed":0.5}
{"Action":"pass","Package":"example.com/a","Test":"TestFast","Elapsed":0.5}
{"Action":"output","Package":"example.com/a","Output":"PASS\n"}
{"Action":"output","Package":"example.com/a","Output":"ok  \texample.com/a\t0.6s\n"}
{"Action":"pass","Package":"example.com/a","Elapsed":0.6}
{"ImportPath":"example.com/c","Action":"build-output","Output":"c.go:1: undefined: x\n"}
{"ImportPath":"example.com/c","Action":"build-fail"}
a line that is not JSON
{"Action":"output","Package":"example.com/b","Test":"TestSlow","Output":"    b_test.go:7: got 1, want 2\n"}
{"Action":"output","Package":"example.com/b","Test":"TestSlow","Output":"--- FAIL: TestSlow (9.00s)\n"}
{"Action":"fail","Package":"example.com/b","Test":"TestSlow","Elapsed":9}
{"Action":"output","Package":"example.com/b","Output":"after the tests: left behind\n"}
{"Action":"output","Package":"example.com/b","Output":"FAIL\texample.com/b\t9.1s\n"}
{"Action":"fail","Package":"example.com/b","Elapsed":9.1}
`

func TestOutputHasPackagesAndFailures(t *testing.T) {
	var out strings.Builder
	run, err := readEvents(&out, strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	want := "ok  \texample.com/a\t0.6s\n" +
		"c.go:1: undefined: x\n" +
		"a line that is not JSON\n" +
		"    b_test.go:7: got 1, want 2\n--- FAIL: TestSlow (9.00s)\n" +
		"after the tests: left behind\nFAIL\texample.com/b\t9.1s\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	times := []elapsed{
		{"example.com/a", "TestFast", 0.5}, {"example.com/a", "", 0.6},
		{"example.com/b", "TestSlow", 9}, {"example.com/b", "", 9.1},
	}
	if diff := cmp.Diff(times, run.Times); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
}

func TestReportListsSlowestFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "times")
	for name, run := range map[string]testRun{
		"unit":     {Seconds: 2, Times: []elapsed{{modulePrefix + "pki", "", 0.4}, {modulePrefix + "cli", "", 1.5}}},
		"scenario": {Seconds: 9, Times: []elapsed{{"a", "TestSlow", 8}, {"a", "TestFast", 1}, {"a", "", 9}}},
	} {
		if err := writeRecord(filepath.Join(dir, name+".json"), run); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run(&out, "", dir, 0, nil); err != nil {
		t.Fatal(err)
	}
	want := `
Time of the tests: 11 s
     9.0 s  scenario
     2.0 s  unit

Time by package (packages can run at the same time)
     9.0 s  a
     1.5 s  cli
     0.4 s  1 packages of less than 1 s each

Slowest tests
     8.0 s  a TestSlow
     1.0 s  a TestFast
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestRunFailsIfTestsFail(t *testing.T) {
	var out strings.Builder
	err := run(&out, filepath.Join(t.TempDir(), "x.json"), "", 0, []string{"./no-such-package"})
	if err == nil || !strings.Contains(err.Error(), "run go test") {
		t.Errorf("got error %v, want the error of go test", err)
	}
	if err := run(&out, "", t.TempDir(), 0, nil); err == nil || !strings.Contains(err.Error(), "run make test") {
		t.Errorf("error without records: got %v, want the command to run", err)
	}
	if err := run(&out, "", "", 0, nil); err == nil {
		t.Error("no error without arguments")
	}
}
