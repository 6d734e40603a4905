package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRowsOfGeneratedTables(t *testing.T) {
	const document = `| not | generated |
|---|---|
| a | b |

<!-- hosts:begin -->

Two cores.

| join | value | aim | |
|---|--:|---|---|
| to Ready | 6.0 s | <= 4.0 s | missed |
| memory | 101 MiB |  |  |

| idle process | PSS |
| --- | ---: |
| node | 80 MiB |

<!-- hosts:end -->

| after | it |
`
	want := []measurement{
		{"p.md", "hosts", "to Ready", map[string]string{"value": "6.0 s", "aim": "<= 4.0 s", "outcome": "missed"}},
		{"p.md", "hosts", "memory", map[string]string{"value": "101 MiB"}},
		{"p.md", "hosts", "node", map[string]string{"PSS": "80 MiB"}},
	}
	if diff := cmp.Diff(want, parse("p.md", document)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDocumentWithoutTablesIsAnError(t *testing.T) {
	dir := t.TempDir()
	for _, page := range pages {
		if err := os.WriteFile(filepath.Join(dir, page), []byte("# Benchmarks\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := collect(dir); err == nil {
		t.Error("got no error")
	}
}

func TestFileHasTheDocumentsFigures(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	want, err := collect(docs)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(docs, file))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/%s differs from the documents; run: go run ./hack/benchmarks", file)
	}
}
