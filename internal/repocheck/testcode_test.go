package repocheck

import "go/ast"

// checkTestCode finds tests that skip themselves and test code that sleeps.
func checkTestCode(t *tree) (violations findings) {
	t.goFiles(func(f file) {
		if !f.isTestCode() {
			return
		}
		handles := testHandles(f.syntax)
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			on, ok := call.X.(*ast.Ident)
			if !ok {
				return true
			}
			switch {
			case handles[on.Name] && (call.Sel.Name == "Skip" || call.Sel.Name == "Skipf" || call.Sel.Name == "SkipNow"):
				violations.add(f.path, f.line(call), "%s.%s: a skipped test hides a gap; provide what the test needs, or fail with a message that names what is missing", on.Name, call.Sel.Name)
			case on.Name == "time" && call.Sel.Name == "Sleep":
				violations.add(f.path, f.line(call), "time.Sleep: wait for the condition that the test needs, with a deadline")
			}
			return true
		})
	})
	return violations
}

// testHandles returns the names of parameters and variables whose types are from package testing.
func testHandles(syntax *ast.File) map[string]bool {
	handles := map[string]bool{}
	ast.Inspect(syntax, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok {
			return true
		}
		typ := field.Type
		if pointer, ok := typ.(*ast.StarExpr); ok {
			typ = pointer.X
		}
		if sel, ok := typ.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "testing" {
				for _, name := range field.Names {
					handles[name.Name] = true
				}
			}
		}
		return true
	})
	return handles
}
