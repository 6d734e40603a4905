package signaturestore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/distribution/reference"
)

const id = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// storeDirectory returns a directory that contains one file for each element of contents.
func storeDirectory(t *testing.T, contents ...string) string {
	t.Helper()
	dir := t.TempDir()
	for n, content := range contents {
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+n))+".yaml"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMostSpecificStoreApplies(t *testing.T) {
	stores, err := Read(storeDirectory(t, `
default-docker: {sigstore-staging: file:///var/lib/containers/sigstore}
docker:
  registry.example.com: {sigstore: "https://registry.example.com/sigstore/"}
  registry.example.com/team: {lookaside: "https://new.example.com", sigstore: "https://old.example.com"}
  registry.example.com/team/staged: {lookaside-staging: file:///tmp}
`, `
docker:
  registry.example.com/team/app: {sigstore: file:///srv/app}
  "*.example.org": {sigstore: "https://wild.example.org"}
`))
	if err != nil {
		t.Fatal(err)
	}
	const end = "@sha256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/signature-"
	for image, want := range map[string]string{
		"registry.example.com/any":         "https://registry.example.com/sigstore/any" + end,
		"registry.example.com/teams/app":   "https://registry.example.com/sigstore/teams/app" + end,
		"registry.example.com/team/other":  "https://new.example.com/team/other" + end,
		"registry.example.com/team/staged": "https://new.example.com/team/staged" + end,
		"registry.example.com/team/app/b":  "file:///srv/app/team/app/b" + end,
		"a.b.example.org/app":              "https://wild.example.org/app" + end,
		"example.org/app":                  "",
		"registry.example.com:5000/any":    "",
	} {
		name, err := reference.ParseNormalizedNamed(image)
		if err != nil {
			t.Fatal(err)
		}
		if got := stores.Address(reference.Domain(name), reference.Path(name), id); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
	none, err := Read(filepath.Join(t.TempDir(), "none"))
	if err != nil || !none.Empty() {
		t.Errorf("no directory: %+v, %v", none, err)
	}
}

func TestInvalidFilesAreReported(t *testing.T) {
	for want, contents := range map[string][]string{
		"must begin with":       {"docker: {a.example.com: {sigstore: /srv}}"},
		"a.yaml":                {"docker: ["},
		"both set the store of": {"docker: {a.example.com: {sigstore: file:///a}}", "docker: {a.example.com: {sigstore: file:///b}}"},
	} {
		if _, err := Read(storeDirectory(t, contents...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", contents, err, want)
		}
	}
}

func TestSignatureSizeIsLimited(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(file, make([]byte, maxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fetch(t.Context(), nil, "file://"+file); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
}
