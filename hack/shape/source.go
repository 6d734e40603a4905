package main

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
	"strconv"
	"strings"
)

// source is a parsed Go file in the repository.
type source struct {
	path   string // relative to the root
	lines  []string
	code   int // lines with code
	syntax *ast.File
	tokens *token.FileSet
}

// loadFiles calls visit for all files with an extension that git tracks or does not ignore, sorted
// by path. It omits files in testdata.
func loadFiles(root, extension string, visit func(name string, content []byte) error) error {
	list := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*"+extension)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list files with git: %w", err)
	}
	for name := range strings.SplitSeq(string(bytes.TrimSuffix(out, []byte{0})), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if name == "" || os.IsNotExist(err) || strings.Contains("/"+name, "/testdata/") {
			continue
		}
		if err != nil {
			return fmt.Errorf("read file: %w", err)
		}
		if err := visit(name, content); err != nil {
			return err
		}
	}
	return nil
}

// loadDocuments returns the contents of all Markdown files, keyed by path.
func loadDocuments(root string) (map[string]string, error) {
	documents := map[string]string{}
	err := loadFiles(root, ".md", func(name string, content []byte) error {
		documents[name] = string(content)
		return nil
	})
	return documents, err
}

// loadSources reads and parses all Go files.
func loadSources(root string) ([]source, error) {
	var sources []source
	err := loadFiles(root, ".go", func(name string, content []byte) (err error) {
		s := source{path: name, lines: strings.Split(string(content), "\n"), code: countCode(content), tokens: token.NewFileSet()}
		if s.syntax, err = parser.ParseFile(s.tokens, name, content, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return fmt.Errorf("parse source: %w", err)
		}
		sources = append(sources, s)
		return nil
	})
	return sources, err
}

// isTest reports whether a file is a test or is in test/.
func (s source) isTest() bool {
	return strings.HasSuffix(s.path, "_test.go") || strings.HasPrefix(s.path, "test/")
}

// folder returns the first element of the path, or the first two elements for folders that contain
// unrelated packages.
func (s source) folder() string {
	parts := strings.Split(path.Dir(s.path), "/")
	switch parts[0] {
	case "apigroup", "admission", "controller", "storage", "hack", "internal", "test":
		return strings.Join(parts[:min(len(parts), 2)], "/")
	}
	return parts[0]
}

// functions calls visit with each function's name and number of lines.
func (s source) functions(visit func(name string, lines int)) {
	for _, decl := range s.syntax.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok {
			visit(function.Name.Name, s.tokens.Position(function.End()).Line-s.tokens.Position(function.Pos()).Line+1)
		}
	}
}

// aliases calls visit with each import that has an alias other than "_" and ".".
func (s source) aliases(visit func(importPath, alias string)) {
	for _, spec := range s.syntax.Imports {
		if importPath, err := strconv.Unquote(spec.Path.Value); err == nil && spec.Name != nil && spec.Name.Name != "_" && spec.Name.Name != "." {
			visit(importPath, spec.Name.Name)
		}
	}
}

// wideComments counts the comment lines that have more than 100 columns.
func (s source) wideComments() (count int) {
	const maxColumns = 100
	for _, group := range s.syntax.Comments {
		for line := s.tokens.Position(group.Pos()).Line; line <= s.tokens.Position(group.End()).Line; line++ {
			if len([]rune(s.lines[line-1])) > maxColumns {
				count++
			}
		}
	}
	return count
}
