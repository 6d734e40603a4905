package repocheck

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// constructors contains functions that return values that are effectively constants. No other
// function may run when a package is loaded.
var constructors = []string{
	"errors.New", "fmt.Errorf", "regexp.MustCompile", "template.Must", "strings.NewReplacer",
	"netip.MustParsePrefix", "netip.AddrFrom4", "sync.OnceValue", "sync.OnceFunc", "resource.MustParse",
}

// loaded maps each variable that must be set during package initialization to the reason.
var loaded = map[string]string{
	"cli/language/language.go Late": "kubectl reads its dictionaries while packages are loaded, so this must be earlier",
}

// checkVariables finds init functions, package variables that are set later, and package variables
// whose values are computed when the package is loaded.
func checkVariables(t *tree) (violations findings) {
	t.goFiles(func(f file) {
		if f.isTestCode() {
			return
		}
		for _, decl := range f.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil && decl.Name.Name == "init" {
					violations.add(f.path, f.line(decl), "init function: let the caller do this")
				}
			case *ast.GenDecl:
				if decl.Tok != token.VAR {
					continue
				}
				for _, spec := range decl.Specs {
					checkVariable(&violations, f, decl, spec.(*ast.ValueSpec))
				}
			}
		}
	})
	return violations
}

func checkVariable(existing *findings, f file, decl *ast.GenDecl, spec *ast.ValueSpec) {
	name := spec.Names[0].Name
	if len(spec.Values) == 0 && !isEmbedded(decl.Doc) && !isEmbedded(spec.Doc) {
		existing.add(f.path, f.line(spec), "package variable %s is set later: make it a field or an argument", name)
	}
	for _, value := range spec.Values {
		call, ok := value.(*ast.CallExpr)
		if !ok {
			continue
		}
		function := "a function literal"
		switch fun := call.Fun.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := fun.X.(*ast.Ident); ok {
				function = pkg.Name + "." + fun.Sel.Name
			}
		case *ast.Ident:
			function = fun.Name
		case *ast.ArrayType, *ast.ParenExpr, *ast.IndexExpr:
			continue // a conversion
		}
		if _, ok := loaded[f.path+" "+name]; !ok && !slices.Contains(constructors, function) {
			existing.add(f.path, f.line(value), "package variable %s calls %s when the package is loaded: call it where the value is used", name, function)
		}
	}
}

// isEmbedded reports whether a comment has the directive that sets a variable's value.
func isEmbedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}
