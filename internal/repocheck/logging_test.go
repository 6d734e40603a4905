package repocheck

import (
	"go/ast"
	"slices"
	"strings"
)

// silent contains the layers whose packages do not log. They return errors to their callers
// instead.
var silent = []string{"plumbing", "client", "client-program", "configuration"}

// checkLogging finds packages in silent layers that log, and failures that are both logged and
// returned.
func checkLogging(t *tree) (violations findings) {
	t.goFiles(func(f file) {
		if f.isTestCode() {
			return
		}
		if layer, _, _ := unit(f.folder()); slices.Contains(silent, layer.name) {
			f.imports(func(importPath string, line int) {
				if importPath == "log/slog" {
					violations.add(f.path, line, "imports log/slog: a package of the layer %q returns errors", layer.name)
				}
			})
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			var statements []ast.Stmt
			switch n := n.(type) {
			case *ast.BlockStmt:
				statements = n.List
			case *ast.CaseClause:
				statements = n.Body
			case *ast.CommClause:
				statements = n.Body
			}
			for i, statement := range statements {
				if logsFailure(statement) && slices.ContainsFunc(statements[i:], returnsError) {
					violations.add(f.path, f.line(statement), "logs a failure and returns it: the caller that handles an error logs it")
				}
			}
			return true
		})
	})
	return violations
}

// returnsError reports whether a statement returns a variable named err or a wrapped error.
func returnsError(statement ast.Stmt) bool {
	result, ok := statement.(*ast.ReturnStmt)
	if !ok || len(result.Results) == 0 {
		return false
	}
	switch last := result.Results[len(result.Results)-1].(type) {
	case *ast.Ident:
		return last.Name == "err"
	case *ast.CallExpr:
		selector, ok := last.Fun.(*ast.SelectorExpr)
		return ok && selector.Sel.Name == "Errorf"
	}
	return false
}

// logsFailure reports whether a statement calls slog.Error or slog.ErrorContext.
func logsFailure(statement ast.Stmt) bool {
	expression, ok := statement.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := expression.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	on, ok := selector.X.(*ast.Ident)
	return ok && on.Name == "slog" && strings.HasPrefix(selector.Sel.Name, "Error")
}
