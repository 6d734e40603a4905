package main

import (
	"fmt"
	"go/ast"
	"io"
	"slices"
	"strings"
)

// maxVerb is the maximum number of lines in a Run function that does not call a phase.
const maxVerb = 12

// writePhases prints how many oc commands call a complete, validate or run method. It lists the
// commands that call none of them and have a Run function of more than maxVerb lines.
func writePhases(w io.Writer, sources []source) {
	count, phased := 0, 0
	var long []figure
	for _, s := range sources {
		if s.isTest() || !strings.HasPrefix(s.path, "cli/") {
			continue
		}
		s.verbs(func(line, size int, hasPhases bool) {
			count++
			switch {
			case hasPhases:
				phased++
			case size > maxVerb:
				long = append(long, figure{fmt.Sprintf("%s:%d", s.path, line), size})
			}
		})
	}
	largestFirst(long)
	fmt.Fprintf(w, "\nVerbs of oc: %d, %d with phases, %d without phases and of more than %d lines\n", count, phased, len(long), maxVerb)
	writeRows(w, long)
}

// verbs calls visit for each Run and RunE function of a command, with the function's line and
// number of lines.
func (s source) verbs(visit func(line, size int, hasPhases bool)) {
	ast.Inspect(s.syntax, func(node ast.Node) bool {
		pair, ok := node.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, ok := pair.Key.(*ast.Ident)
		if !ok || key.Name != "Run" && key.Name != "RunE" {
			return true
		}
		if function, ok := pair.Value.(*ast.FuncLit); ok {
			first, last := s.tokens.Position(function.Pos()).Line, s.tokens.Position(function.End()).Line
			visit(first, max(last-first-1, 1), callsPhase(function))
		}
		return true
	})
}

// callsPhase reports whether a function calls a method named complete, validate or run.
func callsPhase(function *ast.FuncLit) (calls bool) {
	ast.Inspect(function, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			if method, ok := call.Fun.(*ast.SelectorExpr); ok {
				calls = calls || slices.Contains([]string{"complete", "validate", "run"}, method.Sel.Name)
			}
		}
		return !calls
	})
	return calls
}
