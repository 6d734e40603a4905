package coverage

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckProofs checks that the rows' proofs exist below root, the module's root folder. name is the
// coverage file's name in errors. A proof exists if a _test.go file in its package declares the
// function `func TestX(t *testing.T)`. For a subtest, every part of its name must also be a string
// in those files. CheckProofs compiles nothing. It reports every missing proof.
func CheckProofs(root, name string, rows []Row) error {
	var problems []error
	packages := map[string]*testPackage{}
	for _, row := range rows {
		for _, proof := range row.Proofs {
			pkg, ok := packages[proof.Package]
			if !ok {
				var err error
				if pkg, err = parseTests(filepath.Join(root, filepath.FromSlash(proof.Package))); err != nil {
					problems = append(problems, err)
				}
				packages[proof.Package] = pkg
			}
			if err := pkg.check(proof); err != nil {
				problems = append(problems, fmt.Errorf("%s:%d: proof %q of row %q: %w", name, row.Line, proof, row.Name, err))
			}
		}
	}
	return errors.Join(problems...)
}

// testPackage contains the tests in a folder's _test.go files.
type testPackage struct {
	tests   map[string]bool // names of test functions
	strings map[string]bool // all string literals, in the spelling of subtest names
}

func (p *testPackage) check(proof Proof) error {
	if !p.tests[proof.Test] {
		return fmt.Errorf("no function %s in the _test.go files of %s", proof.Test, proof.Package)
	}
	if proof.Subtest == "" || p.strings[proof.Subtest] {
		return nil
	}
	for part := range strings.SplitSeq(proof.Subtest, "/") {
		if !p.strings[part] {
			return fmt.Errorf("no subtest named %q in the _test.go files of %s", part, proof.Package)
		}
	}
	return nil
}

// parseTests parses a folder's _test.go files. A folder without such files results in an empty
// package.
func parseTests(folder string) (*testPackage, error) {
	pkg := &testPackage{tests: map[string]bool{}, strings: map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return pkg, fmt.Errorf("list tests in %q: %w", folder, err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return pkg, fmt.Errorf("parse tests: %w", err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if isTest(n) {
					pkg.tests[n.Name.Name] = true
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					pkg.strings[subtestName(text)] = true
				}
			}
			return true
		})
	}
	return pkg, nil
}

// isTest reports whether the go tool would run the function as a test: its name matches, and its
// only parameter is a pointer to a type T, which is testing.T in a _test.go file.
func isTest(f *ast.FuncDecl) bool {
	name, named := strings.CutPrefix(f.Name.Name, "Test")
	if first, _ := utf8.DecodeRuneInString(name); !named || unicode.IsLower(first) {
		return false
	}
	if f.Recv != nil || len(f.Type.Params.List) != 1 {
		return false
	}
	pointer, ok := f.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	typ, ok := pointer.X.(*ast.SelectorExpr)
	return ok && typ.Sel.Name == "T"
}

// subtestName replaces white space with _, as package testing does in subtest names.
func subtestName(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return '_'
		}
		return r
	}, text)
}
