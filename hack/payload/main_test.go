package main

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/slipway-platform/slipway/internal/payload/manifest"
	"github.com/slipway-platform/slipway/internal/payload/recipe"
)

// build runs the command for dir, and returns the manifest that the command writes there.
func build(t *testing.T, dir string, names ...string) manifest.Manifest {
	t.Helper()
	if err := run(t.Context(), dir, runtime.GOARCH, names); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestProgramIsBuiltOnlyWhenItsInputsChange(t *testing.T) {
	t.Chdir("../..")
	dir := t.TempDir()
	first := build(t, dir, manifest.Pause)
	pause, ok := first.Find(manifest.Pause)
	if !ok || pause.Size == 0 {
		t.Fatalf("manifest %+v", first)
	}
	archive := filepath.Join(dir, pause.Archive())
	// The compared files are kept open, because the kernel reuses the inode number of a deleted
	// file.
	open := func() os.FileInfo {
		t.Helper()
		file, err := os.Open(archive)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	before := open()
	changes := func() bool {
		t.Helper()
		if diff := cmp.Diff(first, build(t, dir, manifest.Pause)); diff != "" {
			t.Errorf("a second build of the same sources differs:\n%s", diff)
		}
		earlier := before
		before = open()
		return !os.SameFile(earlier, before)
	}
	if changes() {
		t.Error("the program was built again although nothing changed")
	}
	other := first
	other.Programs = []manifest.Program{pause}
	other.Programs[0].Inputs = "hash of an older source"
	if err := save(dir, other); err != nil {
		t.Fatal(err)
	}
	if !changes() {
		t.Error("the program was not built again after its inputs changed")
	}
	if err := os.Remove(archive); err != nil {
		t.Fatal(err)
	}
	if !changes() {
		t.Error("the program was not built again after it was removed")
	}
}

func TestInputsAreSourcesOfRecipe(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(path, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/test\n\ngo 1.26\n")
	write("go.sum", "")
	write("cmd/a/main.go", "package main\n\nimport _ \"example.com/test/lib\"\n\nfunc main() {}\n")
	write("lib/lib.go", "package lib\n")
	write("lib/lib_test.go", "package lib\n")
	write("unrelated/unrelated.go", "package unrelated\n")
	r := programRecipe{Recipe: recipe.Recipe{Name: "a", Package: "./cmd/a"}}
	inputs := func() string {
		t.Helper()
		got, err := r.inputs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	base := inputs()
	for path, want := range map[string]bool{
		"cmd/a/main.go": true, "lib/lib.go": true, "go.mod": true, "go.sum": true,
		"lib/lib_test.go": false, "unrelated/unrelated.go": false,
	} {
		original, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(path, string(original)+"// changed\n")
		if got := inputs() != base; got != want {
			t.Errorf("a change of %s changes the inputs: %v, want %v", path, got, want)
		}
		write(path, string(original))
	}
	r.Tags = []string{"other"}
	if inputs() == base {
		t.Error("a change of the recipe does not change the inputs")
	}
}

func TestUnknownProgramIsReported(t *testing.T) {
	err := run(t.Context(), t.TempDir(), runtime.GOARCH, []string{"dockerd"})
	if err == nil || !strings.Contains(err.Error(), `"dockerd"`) || !strings.Contains(err.Error(), manifest.Runc) {
		t.Errorf("error %v", err)
	}
}

func TestUnknownArchitectureIsReported(t *testing.T) {
	err := run(t.Context(), t.TempDir(), "vax", nil)
	if err == nil || !strings.Contains(err.Error(), `"vax"`) || !strings.Contains(err.Error(), "arm64") {
		t.Errorf("error %v", err)
	}
}

// TestProgramIsBuiltForArchitecture builds the smallest program and checks its header.
func TestProgramIsBuiltForArchitecture(t *testing.T) {
	t.Chdir("../..")
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		dir := t.TempDir()
		if err := run(t.Context(), dir, arch, []string{manifest.Pause}); err != nil {
			t.Fatal(err)
		}
		compressed, err := os.ReadFile(filepath.Join(dir, manifest.Program{Name: manifest.Pause}.Archive()))
		if err != nil {
			t.Fatal(err)
		}
		decoder, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		program, err := decoder.DecodeAll(compressed, nil)
		if err != nil {
			t.Fatal(err)
		}
		file, err := elf.NewFile(bytes.NewReader(program))
		if err != nil {
			t.Fatal(err)
		}
		if file.Machine != machine {
			t.Errorf("the program for %s is for %s", arch, file.Machine)
		}
	}
}
