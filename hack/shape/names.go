package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// glossary is the document that lists the names that code should avoid.
const glossary = "docs/glossary.md"

// avoidedWord matches a single word in the last column of a glossary table.
var avoidedWord = regexp.MustCompile(`^[a-zA-Z]+$`)

// preferredWord matches a name in the first column of a glossary table.
var preferredWord = regexp.MustCompile("`([a-zA-Z]+)`")

// avoided returns the words in the last column of a section's tables, except for names that another
// row prefers. If row is not empty, it reads only the row with this value in the first column.
func avoided(text, section, row string) map[string]bool {
	words, preferred := map[string]bool{}, map[string]bool{}
	_, rest, _ := strings.Cut(text, "## "+section+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	for line := range strings.Lines(rest) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || row != "" && strings.TrimSpace(cells[0]) != row {
			continue
		}
		for _, match := range preferredWord.FindAllStringSubmatch(cells[0], -1) {
			preferred[match[1]] = true
		}
		for word := range strings.SplitSeq(cells[2], ",") {
			if word = strings.TrimSpace(word); avoidedWord.MatchString(word) && word != "not" {
				words[word] = true
			}
		}
	}
	maps.DeleteFunc(words, func(word string, _ bool) bool { return preferred[word] })
	return words
}

// writeNames prints the places where local variables and log attributes have names that the
// glossary advises against.
func writeNames(w io.Writer, sources []source, glossary string) {
	locals, keys := avoided(glossary, "Names", "locals"), avoided(glossary, "Log attributes", "")
	delete(locals, "seen") // allowed for sets, and nearly all variables with this name are sets
	var localPlaces, keyPlaces []string
	for _, s := range sources {
		at := func(node ast.Node, name string) string {
			return fmt.Sprintf("%s:%d %s", s.path, s.tokens.Position(node.Pos()).Line, name)
		}
		ast.Inspect(s.syntax, func(node ast.Node) bool {
			for _, local := range definitions(node) {
				if locals[local.Name] {
					localPlaces = append(localPlaces, at(local, local.Name))
				}
			}
			for _, key := range logKeys(node) {
				if keys[key] {
					keyPlaces = append(keyPlaces, at(node, key))
				}
			}
			return true
		})
	}
	writePlaces(w, "Locals with names that the glossary avoids", localPlaces)
	writePlaces(w, "Log attributes with keys that the glossary avoids", keyPlaces)
}

// definitions returns the variables that an assignment or a range loop defines.
func definitions(node ast.Node) (names []*ast.Ident) {
	var left []ast.Expr
	switch n := node.(type) {
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			left = n.Lhs
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			left = []ast.Expr{n.Key, n.Value}
		}
	}
	for _, expression := range left {
		if name, ok := expression.(*ast.Ident); ok {
			names = append(names, name)
		}
	}
	return names
}

// logKeys returns the constant attribute keys in a call to a slog function.
func logKeys(node ast.Node) (keys []string) {
	call, ok := node.(*ast.CallExpr)
	if !ok {
		return nil
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if name, ok := function.X.(*ast.Ident); !ok || name.Name != "slog" {
		return nil
	}
	for i := 1; i < len(call.Args); i += 2 { // the first argument is the message
		if literal, ok := call.Args[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if key, err := strconv.Unquote(literal.Value); err == nil {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// writePlaces prints the number of places and the first few places.
func writePlaces(w io.Writer, title string, places []string) {
	fmt.Fprintf(w, "\n%s: %d\n", title, len(places))
	for _, place := range places[:min(len(places), maxRows)] {
		fmt.Fprintf(w, "          %s\n", place)
	}
}
