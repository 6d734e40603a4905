package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTargetsAreListed(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a/fuzz_test.go":       "package a\n\nfunc FuzzOne(f *testing.F) {}\n\nfunc FuzzTwo(f *testing.F) {}\n\nfunc FuzzHelper(f *testing.F, x int) {}\n",
		"a/one.go":             "package a\n\nfunc FuzzNone(f *testing.F) {}\n",
		"a/testdata/x_test.go": "package x\n\nfunc FuzzNone(f *testing.F) {}\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for only, want := range map[string][]target{
		"": {{root + "/a", "FuzzOne"}, {root + "/a", "FuzzTwo"}}, "/a.FuzzT": {{root + "/a", "FuzzTwo"}}, "none": nil,
	} {
		got, err := find(root, regexp.MustCompile(only))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q selects %v, %v, want %v", only, got, err, want)
		}
	}
}

func TestEveryTargetOfRepositoryIsListed(t *testing.T) {
	targets, err := find("../..", regexp.MustCompile(`registry\.FuzzSubject$|haproxy\.FuzzRoute$`))
	if err != nil || len(targets) != 2 {
		t.Errorf("%v, %v", targets, err)
	}
}

func TestProgressAndFindingsAreParsed(t *testing.T) {
	var r result
	for _, line := range []string{
		"fuzz: elapsed: 0s, gathering baseline coverage: 0/7 completed",
		"fuzz: elapsed: 3s, execs: 71234 (23744/sec), new interesting: 5 (total: 12)",
		"fuzz: elapsed: 6s, execs: 142468 (23744/sec), new interesting: 6 (total: 13)",
		"    Failing input written to testdata/fuzz/FuzzOne/0123456789abcdef",
	} {
		r.read(line)
	}
	if r.executions != 142468 || r.inputs != 13 || r.finding != "testdata/fuzz/FuzzOne/0123456789abcdef" {
		t.Errorf("%+v", r)
	}
}

func TestRowsOfOtherTargetsAreKept(t *testing.T) {
	item, two := result{target: target{"a", "FuzzOne"}, duration: time.Minute, executions: 5, inputs: 2}, result{target: target{"b", "FuzzTwo"}, duration: time.Second, finding: "x"}
	page := "# Title\n\n" + table(map[string]string{}, []result{item, two})
	two.finding, two.executions = "", 9
	want := "| target | time | executions | inputs | findings |\n|---|--:|--:|--:|---|\n| `a.FuzzOne` | 1m0s | 5 | 2 | none |\n| `b.FuzzTwo` | 1s | 9 | 0 | none |\n"
	if diff := cmp.Diff(want, table(rows(page), []result{two})); diff != "" {
		t.Error(diff)
	}
}
