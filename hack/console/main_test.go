package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fixture is a build with a fake npm that copies the sources.
type fixture struct {
	*build
	t     *testing.T
	calls []string
	fail  string
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{build: newBuild(t.TempDir()), t: t}
	f.npm = func(_ context.Context, args ...string) error {
		f.calls = append(f.calls, args[0])
		if args[0] == f.fail {
			return errors.New("no network")
		}
		if args[0] == "ci" {
			f.write("web/node_modules/react/index.js", "react")
			return nil
		}
		if err := os.RemoveAll(f.output); err != nil {
			return err
		}
		f.write("web/build/index.html.br", f.read("web/index.html"))
		f.write("web/build/assets/"+f.read("web/index.html")+".js.br", "code")
		return nil
	}
	f.write("dist/README", "read me")
	f.write("dist/.gitignore", "*")
	f.write("web/package-lock.json", "{}")
	f.write("web/index.html", "one")
	return f
}

func (f *fixture) write(name, content string) {
	f.t.Helper()
	path := filepath.Join(filepath.Dir(f.web), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) read(name string) string {
	f.t.Helper()
	content, err := os.ReadFile(filepath.Join(filepath.Dir(f.web), name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(content)
}

// runs runs the build and returns the npm commands that the build ran.
func (f *fixture) runs() []string {
	f.t.Helper()
	f.calls = nil
	if err := f.run(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	return f.calls
}

func TestConsoleIsBuiltOnlyWhenItsSourcesChange(t *testing.T) {
	f := newFixture(t)
	for _, tt := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"at first", func() {}, []string{"ci", "run"}},
		{"without a change", func() {}, nil},
		{"after a changed source,", func() { f.write("web/index.html", "two") }, []string{"run"}},
		{"after changed packages,", func() { f.write("web/package-lock.json", "{\n}") }, []string{"ci", "run"}},
		{"after npm changed files,", func() { f.write("web/node_modules/.cache", "") }, nil},
		{"after the built files were removed,", func() {
			if err := os.RemoveAll(filepath.Join(f.dist, inputsFile)); err != nil {
				t.Fatal(err)
			}
		}, []string{"run"}},
	} {
		tt.change()
		if got := f.runs(); !slices.Equal(got, tt.want) {
			t.Errorf("%s npm ran %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestOldFilesAreReplaced(t *testing.T) {
	f := newFixture(t)
	f.runs()
	f.write("web/index.html", "two")
	f.runs()
	var got []string
	entries, err := filepath.Glob(filepath.Join(f.dist, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		got = append(got, filepath.Base(entry))
	}
	if diff := cmp.Diff([]string{"two.js.br"}, got); diff != "" {
		t.Errorf("assets (-want +got):\n%s", diff)
	}
	if f.read("dist/README") != "read me" || f.read("dist/.gitignore") != "*" || f.read("dist/index.html.br") != "two" {
		t.Error("the files of the repository or the page changed")
	}
}

func TestFailedBuildIsRepeated(t *testing.T) {
	f := newFixture(t)
	f.fail = "ci"
	if err := f.run(t.Context()); err == nil || !strings.Contains(err.Error(), "package registry") {
		t.Errorf("without a network: %v", err)
	}
	f.fail = "run"
	if err := f.run(t.Context()); err == nil {
		t.Error("no error after a failed build")
	}
	f.fail = ""
	if got := f.runs(); !slices.Equal(got, []string{"run"}) {
		t.Errorf("after a failed build, npm ran %q", got)
	}
}
