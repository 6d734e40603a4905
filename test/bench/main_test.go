package main

import (
	"os"
	"testing"
)

func TestBenchmarkDocumentHasTheMarkers(t *testing.T) {
	document, err := os.ReadFile("../../docs/benchmark.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := section.Replace(string(document), "new\n"); err != nil {
		t.Error(err)
	}
}
