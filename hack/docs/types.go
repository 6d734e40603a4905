package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
)

// types writes a page's sections about Go types with JSON tags. It writes each type once.
type types struct {
	page    *strings.Builder
	pending []reflect.Type
	done    map[reflect.Type]bool
	// comments maps "package.Type" and "package.Type.Field" to the comments in the Go packages.
	comments map[string]string
	parsed   map[string]bool
}

func newTypes(page *strings.Builder) *types {
	return &types{page: page, done: map[reflect.Type]bool{}, comments: map[string]string{}, parsed: map[string]bool{}}
}

// writeAll writes roots and all types that they refer to.
func (r *types) writeAll(roots ...reflect.Type) error {
	r.pending = roots
	for len(r.pending) > 0 {
		next := r.pending[0]
		r.pending = r.pending[1:]
		if r.done[next] {
			continue
		}
		r.done[next] = true
		if err := r.writeType(next); err != nil {
			return err
		}
	}
	return nil
}

func (r *types) writeType(t reflect.Type) error {
	if err := r.parse(t.PkgPath()); err != nil {
		return err
	}
	fmt.Fprintf(r.page, "\n## %s\n\n", t.Name())
	if comment := r.comments[t.PkgPath()+"."+t.Name()]; comment != "" {
		fmt.Fprintf(r.page, "%s\n\n", comment)
	}
	return r.writeFields(t)
}

// writeFields writes a struct's fields as list items, including the fields of inlined structs.
func (r *types) writeFields(t reflect.Type) error {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if inline := name == "" && (field.Anonymous || strings.Contains(options, "inline")); inline {
			if hasSection(field.Type) {
				if err := r.parse(field.Type.PkgPath()); err != nil {
					return err
				}
				if err := r.writeFields(field.Type); err != nil {
					return err
				}
			}
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		fmt.Fprintf(r.page, "- `%s` (%s)", name, r.typeName(field.Type))
		if comment := r.comments[t.PkgPath()+"."+t.Name()+"."+field.Name]; comment != "" {
			fmt.Fprintf(r.page, ": %s", comment)
		}
		r.page.WriteString("\n")
	}
	return nil
}

// typeName returns a type's name. If the type has its own section, typeName returns a link to the
// section, and schedules the section to be written.
func (r *types) typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return r.typeName(t.Elem())
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes in base64"
		}
		return "list of " + r.typeName(t.Elem())
	case reflect.Map:
		return "map of " + r.typeName(t.Elem())
	case reflect.Struct:
		if hasSection(t) {
			r.pending = append(r.pending, t)
			return fmt.Sprintf("[%s](#%s)", t.Name(), strings.ToLower(t.Name()))
		}
		if t.Name() == "Duration" {
			return "duration such as `30s`"
		}
		if path := strings.TrimPrefix(t.PkgPath(), "k8s.io/"); path != t.PkgPath() {
			return "Kubernetes' " + t.Name()
		}
		return t.Name()
	case reflect.Interface:
		return "object"
	case reflect.Bool:
		return "boolean"
	}
	return strings.TrimRight(t.Kind().String(), "123468")
}

// hasSection reports whether a type has its own section. Only structs of Slipway and OpenShift have
// sections.
func hasSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && (strings.HasPrefix(t.PkgPath(), "github.com/openshift/api/") || strings.HasPrefix(t.PkgPath(), "github.com/slipway-platform/"))
}

// parse reads a Go package's comments. It reads each package only once.
func (r *types) parse(path string) error {
	if r.parsed[path] {
		return nil
	}
	r.parsed[path] = true
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		return fmt.Errorf("find package %s: %w", path, err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil {
		return fmt.Errorf("list files of package %s: %w", path, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parse package %s: %w", path, err)
		}
		for _, declaration := range file.Decls {
			r.readDeclaration(path, declaration)
		}
	}
	return nil
}

func (r *types) readDeclaration(path string, declaration ast.Decl) {
	general, ok := declaration.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range general.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		doc := t.Doc
		if doc == nil {
			doc = general.Doc
		}
		key := path + "." + t.Name.Name
		r.comments[key] = sentence(doc, t.Name.Name)
		structure, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, field := range structure.Fields.List {
			for _, name := range field.Names {
				r.comments[key+"."+name.Name] = sentence(field.Doc, name.Name)
			}
		}
	}
}

// marker matches comment lines that are directives for generators.
var marker = regexp.MustCompile(`(?m)^\s*(\+|\*\*|---).*$`)

// sentence returns a comment as one paragraph. It removes "NAME is" or "NAME are" from the
// beginning.
func sentence(comment *ast.CommentGroup, name string) string {
	text := strings.Join(strings.Fields(marker.ReplaceAllString(comment.Text(), "")), " ")
	for _, verb := range []string{" is ", " are "} {
		if rest, ok := strings.CutPrefix(text, name+verb); ok && rest != "" {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return text
}
