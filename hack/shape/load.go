package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/doc"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// shape contains a package's figures.
type shape struct {
	folder  string // relative to the module, "." for the root
	code    int    // lines with code, without comments and blank lines
	test    int    // lines with code in _test.go files
	purpose string // first sentence of the doc comment, without "Package x"
	imports []string
	problem string // error in the package or in a package that it imports, or ""
}

// listed contains the package fields that `go list` prints.
type listed struct {
	Dir, ImportPath, Name, Doc                                            string
	Imports, GoFiles, IgnoredGoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
	Module                                                                struct{ Path string }
	Error                                                                 *problem
	DepsErrors                                                            []problem
}

// problem is an error from the go tool.
type problem struct{ Err string }

// load returns the packages below root, sorted by folder. For a package that does not build, it
// returns the data that the go tool can read, with the error in problem.
func load(root string) ([]shape, error) {
	list := exec.Command("go", "list", "-e",
		"-json=Dir,ImportPath,Name,Doc,Imports,GoFiles,IgnoredGoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Module,Error,DepsErrors", "./...")
	list.Dir = root
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages with the go tool: %w", err)
	}
	var shapes []shape
	for packages := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg listed
		if err := packages.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("decode output of go list: %w", err)
		}
		s, err := measure(pkg)
		if err != nil {
			return nil, err
		}
		shapes = append(shapes, s)
	}
	slices.SortFunc(shapes, func(a, b shape) int {
		return slices.Compare(strings.Split(a.folder, "/"), strings.Split(b.folder, "/"))
	})
	return shapes, nil
}

// measure counts a package's lines and determines its purpose.
func measure(pkg listed) (shape, error) {
	prefix := pkg.Module.Path + "/"
	s := shape{folder: strings.TrimPrefix(pkg.ImportPath, prefix), purpose: pkg.Doc}
	if pkg.ImportPath == pkg.Module.Path {
		s.folder = "."
	}
	if pkg.Error == nil && len(pkg.DepsErrors) > 0 {
		pkg.Error = &pkg.DepsErrors[0]
	}
	if pkg.Error != nil {
		s.problem, _, _ = strings.Cut(pkg.Error.Err, "\n")
	}
	for _, path := range pkg.Imports {
		if local, ok := strings.CutPrefix(path, prefix); ok {
			s.imports = append(s.imports, local)
		}
	}
	for _, name := range slices.Concat(pkg.GoFiles, pkg.IgnoredGoFiles, pkg.CgoFiles, pkg.TestGoFiles, pkg.XTestGoFiles) {
		source, err := os.ReadFile(filepath.Join(pkg.Dir, name))
		if err != nil {
			return s, fmt.Errorf("read source: %w", err)
		}
		if strings.HasSuffix(name, "_test.go") {
			s.test += countCode(source)
		} else {
			s.code += countCode(source)
		}
		if s.purpose == "" { // the package contains only tests
			s.purpose = synopsis(source)
		}
	}
	s.purpose = strings.TrimPrefix(s.purpose, "Package "+pkg.Name+" ")
	s.purpose = strings.TrimPrefix(s.purpose, "Command "+filepath.Base(pkg.Dir)+" ")
	return s, nil
}

// synopsis returns the first sentence of a file's package comment, or "".
func synopsis(source []byte) string {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil || file.Doc == nil {
		return ""
	}
	return new(doc.Package).Synopsis(file.Doc.Text())
}

// countCode counts the lines that contain a token other than a comment.
func countCode(source []byte) int {
	var s scanner.Scanner
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(source))
	s.Init(file, source, func(token.Position, string) {}, 0)
	count, last := 0, 0
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return count
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue // inserted by the scanner at the end of a line
		}
		first := file.Line(pos)
		end := first + strings.Count(text, "\n") // raw strings span lines
		count += end - max(first-1, last)
		last = end
	}
}
