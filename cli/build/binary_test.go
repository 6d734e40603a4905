package build

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestPackKeepsModesAndLinks(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(
		os.MkdirAll(filepath.Join(dir, ".git", "objects"), 0o755), os.Mkdir(filepath.Join(dir, "sub"), 0o755),
		os.WriteFile(filepath.Join(dir, "sub", "run.sh"), []byte("true"), 0o755), os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("a"), 0o600),
		os.Symlink("../../etc/passwd", filepath.Join(dir, "link")),
	); err != nil {
		t.Fatal(err)
	}
	source := &Source{Dir: dir, Commit: "abc", Exclude: regexp.MustCompile(`(^|/)\.git(/|$)`), Progress: io.Discard}
	content, options, err := source.open(t.Context())
	if err != nil || len(options) != 1 || options["revision.commit"] != "abc" {
		t.Fatal(options, err)
	}
	zipped, err := gzip.NewReader(content)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		switch {
		case header.Name == "link" && (header.Typeflag != tar.TypeSymlink || header.Linkname != "../../etc/passwd"):
			t.Errorf("link %+v", header)
		case header.Name == "sub/run.sh" && (header.Mode&0o111 == 0 || header.Size != 4 || header.Uid != 0):
			t.Errorf("program %+v", header)
		}
	}
	if want := []string{".gitignore", "link", "sub/", "sub/run.sh"}; !slices.Equal(names, want) {
		t.Errorf("archive contains %q, want %q", names, want)
	}
}

func TestSourcesOfBuild(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.jar")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		source         Source
		asFile, failed string
	}{
		"file":             {Source{File: file}, "app.jar", ""},
		"file from input":  {Source{File: "-"}, "Dockerfile", ""},
		"archive":          {Source{Archive: file}, "", ""},
		"missing":          {Source{File: file + "x"}, "", "no such file"},
		"file for a dir":   {Source{Dir: file}, "", "is not a directory"},
		"dir for a repo":   {Source{Repo: filepath.Dir(file)}, "", "find commit"},
		"option as commit": {Source{Repo: ".", Commit: "--output=/tmp/x"}, "", "find commit"},
	} {
		tt.source.In, tt.source.Progress = strings.NewReader("content"), io.Discard
		content, options, err := tt.source.open(t.Context())
		if tt.failed != "" {
			if err == nil || !strings.Contains(err.Error(), tt.failed) {
				t.Errorf("%s: %v, want %q", name, err, tt.failed)
			}
			continue
		}
		if err != nil || options["asFile"] != tt.asFile {
			t.Errorf("%s: %v, %v", name, options, err)
			continue
		}
		if text, err := io.ReadAll(content); err != nil || string(text) != "content" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestPostReceiveRefsAreParsed(t *testing.T) {
	old := strings.Repeat("0", 40)
	hook := &Hook{PostReceive: "-", Repository: t.TempDir()}
	refs, err := hook.refs(t.Context(), strings.NewReader(old+" abc refs/heads/main\nabc "+old+" refs/heads/gone\n"))
	if err != nil || len(refs) != 1 || refs[0].Commit != "abc" || refs[0].Ref != "refs/heads/main" {
		t.Errorf("refs are %+v, %v", refs, err)
	}
	if _, err := hook.refs(t.Context(), strings.NewReader("push\n")); err == nil {
		t.Error("invalid input is accepted")
	}
}
