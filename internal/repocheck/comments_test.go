package repocheck

import (
	"go/ast"
	"path"
	"strings"
)

// checkPackageDocs finds packages whose doc comment is missing, is in an unexpected file, or does
// not begin as the go tool requires.
func checkPackageDocs(t *tree) (violations findings) {
	documented := map[string]bool{}
	code := map[string]bool{} // folders with files that are not tests
	t.goFiles(func(f file) { code[f.folder()] = code[f.folder()] || !f.isTest() })
	t.goFiles(func(f file) {
		if f.syntax.Doc == nil || code[f.folder()] && f.isTest() {
			return
		}
		documented[f.folder()] = true
		name := f.syntax.Name.Name
		begin, home := "Package "+strings.TrimSuffix(name, "_test")+" ", path.Base(f.folder())+".go"
		if name == "main" {
			begin, home = "Command "+path.Base(f.folder())+" ", "main.go"
		}
		if !strings.HasPrefix(f.syntax.Doc.Text(), begin) {
			violations.add(f.path, f.line(f.syntax.Doc), "doc comment begins with %q: begin it with %q", firstWords(f.syntax.Doc.Text()), begin)
		}
		file := path.Base(f.path)
		if code[f.folder()] && file != "doc.go" && file != home && file != name+".go" {
			violations.add(f.path, f.line(f.syntax.Doc), "doc comment of the package: move it to %s or doc.go", home)
		}
	})
	for _, folder := range goFolders(t) {
		if !documented[folder] {
			violations.add(folder, 0, "package has no doc comment: describe its purpose in %s.go, doc.go or a program's main.go", path.Base(folder))
		}
	}
	return violations
}

func firstWords(text string) string {
	words := strings.Fields(text)
	return strings.Join(words[:min(len(words), 3)], " ")
}

// checkExported finds exported identifiers without a comment. For constants, variables and types, a
// comment on their group or at the end of the line is sufficient.
func checkExported(t *tree) (violations findings) {
	t.goFiles(func(f file) {
		if f.isTest() || f.syntax.Name.Name == "main" || ast.IsGenerated(f.syntax) {
			return
		}
		for _, decl := range f.syntax.Decls {
			for _, name := range undocumented(decl) {
				violations.add(f.path, f.line(name), "exported %s has no comment: describe its contract, with formats, units and errors", name.Name)
			}
		}
	})
	return violations
}

// undocumented returns the exported names that a declaration leaves without a comment.
func undocumented(decl ast.Decl) (names []*ast.Ident) {
	add := func(name *ast.Ident) {
		if name.IsExported() {
			names = append(names, name)
		}
	}
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Doc == nil && (decl.Recv == nil || ast.IsExported(receiver(decl))) {
			add(decl.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Doc == nil && spec.Comment == nil && decl.Doc == nil {
					add(spec.Name)
				}
			case *ast.ValueSpec:
				if spec.Doc == nil && spec.Comment == nil && decl.Doc == nil {
					for _, name := range spec.Names {
						add(name)
					}
				}
			}
		}
	}
	return names
}

// receiver returns the name of a method's receiver type.
func receiver(method *ast.FuncDecl) string {
	typ := method.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}
