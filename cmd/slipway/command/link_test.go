package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgramsAreLinkedOnceAndUnlinked(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, tt := range map[string]struct {
		answer string
		want   []string
	}{"yes": {"y\n", []string{"slipway", "oc"}}, "no": {"\n", nil}, "the end of the input": {"", nil}} {
		programs, dir, data := t.TempDir(), t.TempDir(), t.TempDir()
		var out bytes.Buffer
		l := linker{dataDir: data, dir: dir, out: &out, programs: map[string]string{
			"slipway": filepath.Join(programs, "slipway"), "oc": filepath.Join(programs, "oc"),
		}}
		for range 2 {
			l.in = strings.NewReader(tt.answer)
			if err := l.offer(); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Count(out.String(), "Link slipway and oc into "+dir); got != 1 {
			t.Errorf("%s: %d prompts: %s", name, got, out.String())
		}
		for _, program := range []string{"slipway", "oc"} {
			target, err := os.Readlink(filepath.Join(dir, program))
			if linked := err == nil; linked != (tt.want != nil) || linked && target != l.programs[program] {
				t.Errorf("%s: %s links to %q, %v", name, program, target, err)
			}
		}
		if err := removeLinks(data); err != nil {
			t.Fatal(err)
		}
		if rest, err := os.ReadDir(dir); err != nil || len(rest) > 0 {
			t.Errorf("%s: links still exist: %v, %v", name, rest, err)
		}
	}
}

func TestLinksDoNotReplaceOtherPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir, data := t.TempDir(), t.TempDir()
	other := filepath.Join(dir, "oc")
	if err := os.WriteFile(other, []byte("another client"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	l := linker{dataDir: data, dir: dir, in: strings.NewReader("yes\n"), out: &out, programs: map[string]string{"slipway": "/opt/slipway", "oc": "/opt/oc"}}
	if err := l.offer(); err != nil || !strings.Contains(out.String(), "Link slipway into") {
		t.Fatalf("%q, %v", out.String(), err)
	}
	// An administrator replaces the link with the program itself.
	if err := os.Remove(filepath.Join(dir, "slipway")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "slipway"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := removeLinks(data); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"oc", "slipway"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := removeLinks(t.TempDir()); err != nil {
		t.Errorf("without a record: %v", err)
	}
}
