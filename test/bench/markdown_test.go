package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReportReplacesWhatStandsBetweenTheMarkers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "benchmark.md")
	document := "# Benchmark\n\n" + beginMarker + "old\n" + endMarker + "\nAfter.\n"
	if err := os.WriteFile(path, []byte(document), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time replaces the first
		if err := writeBetweenMarkers(path, "| new |\n"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Benchmark\n\n" + beginMarker + "\n| new |\n\n" + endMarker + "\nAfter.\n"
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDocumentWithoutMarkersIsAnErrorThatNamesThem(t *testing.T) {
	for document, missing := range map[string]string{
		"nothing":                             "bench:begin",
		beginMarker:                           "bench:end",
		endMarker + "between\n" + beginMarker: "bench:end",
	} {
		_, err := replaceBetweenMarkers(document, "new")
		if err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("document %q: got error %v, want one that names %s", document, err, missing)
		}
	}
}

func TestBenchmarkDocumentHasTheMarkers(t *testing.T) {
	document, err := os.ReadFile("../../docs/benchmark.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replaceBetweenMarkers(string(document), "new"); err != nil {
		t.Error(err)
	}
}
