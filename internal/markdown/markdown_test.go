package markdown

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var section = Section{Begin: "<!-- table -->", End: "<!-- end of table -->"}

func TestOnlySectionIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("# Page\n\n<!-- table -->\nold\n<!-- end of table -->\n\nAfter.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call replaces the first section
		if err := section.Write(path, "| new |\n"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# Page\n\n<!-- table -->\n\n| new |\n\n<!-- end of table -->\n\nAfter.\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMissingMarkerIsReported(t *testing.T) {
	for document, missing := range map[string]string{
		"nothing":                               section.Begin,
		section.Begin:                           section.End,
		section.End + "between" + section.Begin: section.End,
	} {
		_, err := section.Replace(document, "new\n")
		if err == nil || !strings.HasPrefix(err.Error(), `it has no line "`+missing+`"`) {
			t.Errorf("document %q: got error %v, want one that names %s", document, err, missing)
		}
	}
}

func TestMissingDocumentIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gone.md")
	if err := section.Write(path, "new\n"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("error is %v", err)
	}
}
