package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// module is a module with two tests. The first test fails until a file exists, and creates this
// file. The second test always fails.
var module = map[string]string{
	"go.mod": "module example.com/flaky\n\ngo 1.26\n",
	"flaky/flaky_test.go": `package flaky

import (
	"os"
	"testing"
)

func TestSecondTime(t *testing.T) {
	if _, err := os.Stat("ran"); err != nil {
		os.WriteFile("ran", nil, 0o600)
		t.Fatal("the first time")
	}
}

func TestSecondTimeNot(t *testing.T) {}
`,
	"broken/broken_test.go": `package broken

import "testing"

func TestNever(t *testing.T) { t.Fatal("each time") }
`,
	"left/left_test.go": `package left

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	m.Run()
	os.Exit(1)
}

func TestFine(t *testing.T) {}
`,
}

func TestFailedTestsAreRunAgain(t *testing.T) {
	for _, test := range []struct {
		name, pkg string
		limit     int
		fails     bool
		flaky     []testName
	}{
		{"passes on the second run", "./flaky", 1, false, []testName{{"example.com/flaky/flaky", "TestSecondTime"}}},
		{"without a second run", "./flaky", 0, true, nil},
		{"fails twice", "./broken", 1, true, nil},
		{"fails after its tests", "./left", 1, true, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for path, content := range module {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			err := run(&out, "times/unit.json", "", test.limit, []string{"-count=1", "-p", "1", test.pkg})
			if (err != nil) != test.fails {
				t.Fatalf("got error %v, want an error: %v; output:\n%s", err, test.fails, &out)
			}
			runs, err := readRecords("times")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.flaky, runs["unit"].Flaky); diff != "" {
				t.Errorf("flaky tests (-want +got):\n%s", diff)
			}
			var report strings.Builder
			writeReport(&report, runs)
			if test.flaky != nil && !strings.Contains(report.String(), "flaky TestSecondTime") {
				t.Errorf("the report does not name the flaky test:\n%s", &report)
			}
		})
	}
}
