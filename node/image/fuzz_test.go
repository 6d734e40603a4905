package image

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// FuzzArchive checks that a file that is not an image archive is rejected before it reaches the
// store.
func FuzzArchive(f *testing.F) {
	f.Add([]byte("\x1f\x8b\x08\x00"), "a.tar.gz")
	f.Add([]byte("\x28\xb5\x2f\xfd\x00"), "../../etc/passwd")
	f.Add(make([]byte, 600), ".tar")
	f.Fuzz(func(t *testing.T, content []byte, name string) {
		stream, err := decompress(bytes.NewReader(content))
		if err == nil {
			_, _ = io.CopyN(io.Discard, stream, 1<<20)
			stream.Close()
		}
		if base := baseName(name); base == "localhost/" || filepath.Clean(base) != base {
			t.Errorf("an archive %q has images named %q", name, base)
		}
	})
}

// FuzzRecipe checks that no recipe causes a panic.
func FuzzRecipe(f *testing.F) {
	for _, seed := range []string{"FROM a\nCOPY b /c\n", "ARG A=b\nFROM ${A}\nENV C=$A\n", "FROM a\nRUN x", "FROM", "FROM a <<E\nE", "FROM ${A:-${B:-c}}", "# escape=`\nFROM a`\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "Dockerfile")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if read, err := (Recipe{File: file, Name: "a", Arguments: map[string]string{"A": "x"}}).read(); err == nil && read.base == "" {
			t.Errorf("%q begins with no image", text)
		}
	})
}
