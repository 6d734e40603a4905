package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// testSources writes files to a new git repository and loads them as sources.
func testSources(t *testing.T, files map[string]string) []source {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", root).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	sources, err := loadSources(root)
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

func TestFigures(t *testing.T) {
	const block = "\tone()\n\ttwo()\n\tthree()\n\tfour()\n\tfive()\n\tsix()\n"
	var out strings.Builder
	writeFigures(&out, testSources(t, map[string]string{
		"pki/a.go":           "package pki\n\nimport x \"errors\"\n\nfunc a() {\n" + block + "}\n",
		"pki/b.go":           "package pki\n\nimport y \"errors\"\n\nfunc b() {\n" + block + "}\n",
		"pki/a_test.go":      "package pki\n\nfunc c() {\n" + block + "}\n",
		"storage/csi/csi.go": "package csi // " + strings.Repeat("wide ", 20) + "\n",
		"test/kit/kit.go":    "package kit\n",
		"pki/testdata/x.go":  "package broken {\n",
	}))
	for _, want := range []string{
		"Files without tests: 3, median 12 lines",
		"Functions without tests: 2, median 8 lines, 0 of more than 60, 0 of more than 80\n       8  pki/a.go a",
		"0.45  pki (20 lines)",
		"0.00  storage/csi (1 lines)",
		"0.48  all, with the 1 lines of test/",
		"ones included: 1\n       1  storage/csi",
		"Repetitions: 1 runs of 6 or more equal lines of code, outside tests\n       6  lines  pki/a.go:6, pki/b.go:6",
		"several aliases: 1\n          errors: x, y",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("figures lack %q:\n%s", want, out.String())
		}
	}
}

func TestStructureListsMisplacedCode(t *testing.T) {
	const queue = "\n\nvar q = workqueue.NewTyped[string]()\n// workqueue.NewTyped\n"
	var out strings.Builder
	writeStructure(&out, testSources(t, map[string]string{
		"controller/run.go":       "package controller" + queue,
		"apigroup/apps/a.go":      "package apps" + queue,
		"apigroup/apps/a_test.go": "package apps" + queue,
	}))
	if want := "Work queues outside controller: 1\n          apigroup/apps/a.go:3\n\nInformer"; !strings.Contains(out.String(), want) {
		t.Errorf("structure lacks %q:\n%s", want, out.String())
	}
}

func TestDocumentFigures(t *testing.T) {
	var out strings.Builder
	writeDocuments(&out, map[string]string{"README.md": "[a](b), [c](d)\n| e |\n", "docs/x.md": "| one two | three four five |\n"})
	for _, want := range []string{"README.md: 2 links (aim: 6), 1 rows of tables\n", "largest cell of a table: 3, docs/x.md\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("figures lack %q:\n%s", want, out.String())
		}
	}
}

func TestTimesOfLastRunsArePrinted(t *testing.T) {
	root := t.TempDir()
	times := filepath.Join(root, "bin", "times")
	if err := os.MkdirAll(times, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"check": "142\n", "unit.json": `{"Seconds": 301.6, "Times": []}`, "scenario.json": "{"} {
		if err := os.WriteFile(filepath.Join(times, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	writeTimes(&out, root)
	want := "\nSeconds of the last make check: 142 (aim: 180)\nSeconds of the last make unit: 302\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestSizeOfCompositionRootIsPrinted(t *testing.T) {
	var out strings.Builder
	writeRoot(&out, testSources(t, map[string]string{
		"platform/a.go": "package platform\n\n// comment\nvar a = 1\n", "platform/a_test.go": "package platform\n",
		"platform/preflight/p.go": "package preflight\n", "pki/a.go": "package pki\n",
	}))
	if want := "\nLines of code in the folders of the composition root (aim: each at most 1500)\n       2  platform\n       1  platform/preflight\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
