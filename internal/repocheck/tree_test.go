package repocheck

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the import path of the root folder.
const module = "github.com/slipway-platform/slipway"

// tree contains the repository's text files, sorted by path, for the rules to check.
type tree struct {
	files   []file
	folders map[string]bool // every folder that contains a file
	others  map[string]bool // every file that is not text, such as a picture
}

// file is a text file.
type file struct {
	path   string // relative to the root, with slashes
	text   string
	syntax *ast.File // nil for files that are not Go or cannot be parsed
	tokens *token.FileSet
	err    error // why a Go file cannot be parsed
}

// newTree parses files, which are given as a map from paths to contents.
func newTree(texts map[string]string) *tree {
	t := &tree{folders: map[string]bool{}, others: map[string]bool{}}
	for name, text := range texts {
		f := file{path: name, text: text}
		if path.Ext(name) == ".go" && !strings.Contains("/"+name, "/testdata/") {
			f.tokens = token.NewFileSet()
			f.syntax, f.err = parser.ParseFile(f.tokens, name, text, parser.ParseComments|parser.SkipObjectResolution)
			if f.err != nil {
				f.syntax = nil
			}
		}
		t.files = append(t.files, f)
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			t.folders[dir] = true
		}
	}
	slices.SortFunc(t.files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return t
}

// loadTree reads every text file that git tracks or would track.
func loadTree(t *testing.T) *tree {
	t.Helper()
	const root = "../.."
	list := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list files of the repository with git: %v: run the test in a clone", err)
	}
	texts, others := map[string]string{}, map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		switch {
		case os.IsNotExist(err): // deleted but not yet committed
		case err != nil:
			t.Fatalf("read repository: %v", err)
		case bytes.IndexByte(content, 0) >= 0:
			others[name] = true
		default:
			texts[name] = string(content)
		}
	}
	files := newTree(texts)
	files.others = others
	return files
}

// goFiles calls visit for every Go file that can be parsed.
func (t *tree) goFiles(visit func(file)) {
	for _, f := range t.files {
		if f.syntax != nil {
			visit(f)
		}
	}
}

// folder returns the file's folder, or "." for the root.
func (f file) folder() string { return path.Dir(f.path) }

// isTest reports whether the file is compiled only for tests.
func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// isTestCode reports whether the file is part of the tests. The tests include all files below
// test/, and packages such as apitest that only tests import.
func (f file) isTestCode() bool {
	return f.isTest() || strings.HasPrefix(f.path, "test/") || strings.HasSuffix(f.folder(), "test")
}

// imports calls visit for every import path, with its line number.
func (f file) imports(visit func(importPath string, line int)) {
	for _, spec := range f.syntax.Imports {
		if importPath, err := strconv.Unquote(spec.Path.Value); err == nil {
			visit(importPath, f.line(spec))
		}
	}
}

func (f file) line(n ast.Node) int { return f.tokens.Position(n.Pos()).Line }

// findings contains violations of a rule, one per line.
type findings []string

// add adds `<path>:<line>: <problem>`. It omits line 0.
func (f *findings) add(path string, line int, format string, args ...any) {
	place := path
	if line > 0 {
		place = fmt.Sprintf("%s:%d", path, line)
	}
	*f = append(*f, place+": "+fmt.Sprintf(format, args...))
}

// checkSyntax finds Go files that cannot be parsed. The other rules ignore these files.
func checkSyntax(t *tree) (violations findings) {
	for _, f := range t.files {
		if f.err != nil {
			violations.add(f.path, 0, "cannot be parsed: %v", f.err)
		}
	}
	return violations
}
