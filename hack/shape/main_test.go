package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadAndReport(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"go.mod":            "module example.com/m\n\ngo 1.26\n",
		"kube/kube.go":      "// Package kube runs it. And more.\npackage kube\n\nimport _ \"example.com/m/kube/etcd\"\n",
		"kube/kube_test.go": "package kube\n\nvar a = 1\n",
		"kube/etcd/etcd.go": "package etcd\n",
		"kube-x/x.go":       "// Command kube-x helps.\npackage main\n\nfunc main() {}\n",
		"test/x_test.go":    "// Package test tests it.\npackage test\n",
		"broken/broken.go":  "package broken\n\nimport _ \"example.com/m/gone\"\n\nfunc {\n",
	} {
		path = filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	shapes, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range shapes {
		if s.folder == "broken" {
			if s.problem == "" {
				t.Error("the broken package has no problem")
			}
			shapes[i].problem, shapes[i].imports = "gone", nil
		}
	}
	var out strings.Builder
	report(&out, shapes)
	want := `
  code   test  package
     3      0  broken
               (no doc comment)
               does not build: gone
     2      2  kube
               runs it.
               imports kube/etcd
     1      0  kube/etcd
               (no doc comment)
     2      0  kube-x
               helps.
     0      1  test
               tests it.
     8      3  in 5 packages; lines with code, without comments and blank lines
`
	if diff := cmp.Diff(want[1:], out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestLinesFitHundredColumns(t *testing.T) {
	var out strings.Builder
	report(&out, []shape{{folder: "kube", purpose: strings.Repeat("runs über ", 30), imports: []string{strings.Repeat("x", 120), "a"}}})
	want := `
  code   test  package
     0      0  kube
               runs über runs über runs über runs über runs über runs über runs über runs über runs
               über runs über runs über runs über runs über runs über runs über runs über runs über
               runs über runs über runs über runs über runs über runs über runs über runs über runs
               über runs über runs über runs über runs über
               imports
               ` + strings.Repeat("x", 120) + `,
               a
     0      0  in 1 packages; lines with code, without comments and blank lines
`
	if diff := cmp.Diff(want[1:], out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestCountCode(t *testing.T) {
	tests := []struct {
		name, source string
		want         int
	}{
		{"empty", "", 0},
		{"comments and blank lines", "// a\n\n/* b\nc */\n", 0},
		{"code and a comment on a line", "package a // b\n", 1},
		{"several tokens on a line", "package a\nvar b, c = 1, 2\n", 2},
		{"raw string over three lines", "package a\nvar b = `1\n\n3` + `4`\n", 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := countCode([]byte(tt.source)); got != tt.want {
				t.Errorf("countCode(%q) = %d, want %d", tt.source, got, tt.want)
			}
		})
	}
}
