package repocheck

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// layer is a layer in the vocabulary.
type layer struct {
	name    string
	folders []string // patterns
	imports []string // names of layers
}

// layers is the parsed vocabulary.
var layers = readVocabulary(vocabulary)

// readVocabulary reads the lines below the table's heading.
func readVocabulary(table string) (read []layer) {
	columns := regexp.MustCompile(` {2,}`)
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[2:] {
		cells := columns.Split(line, 4)
		i := slices.IndexFunc(read, func(l layer) bool { return l.name == cells[0] })
		if i < 0 {
			i = len(read)
			read = append(read, layer{name: cells[0]})
		}
		read[i].folders = append(read[i].folders, strings.Fields(cells[1])...)
		read[i].imports = append(read[i].imports, strings.Fields(cells[2])...)
	}
	return read
}

// unit returns a folder's layer, and the name of the folder's unit within that layer. ok is false
// for a folder that is not in the vocabulary. The most specific pattern applies.
func unit(folder string) (of layer, name string, ok bool) {
	for _, l := range layers {
		for _, pattern := range l.folders {
			candidate := pattern
			if parent, each := strings.CutSuffix(pattern, "/*"); each {
				rest, below := strings.CutPrefix(folder, parent+"/")
				if !below {
					continue
				}
				child, _, _ := strings.Cut(rest, "/")
				candidate = parent + "/" + child
			}
			if within(folder, candidate) && len(candidate) > len(name) {
				of, name, ok = l, candidate, true
			}
		}
	}
	return of, name, ok
}

// within reports whether a slash-separated path is the folder or is below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// checkFolders finds Go code in folders that are not in the vocabulary.
func checkFolders(t *tree) (violations findings) {
	for _, folder := range goFolders(t) {
		if _, _, ok := unit(folder); !ok {
			violations.add(folder, 0, "folder is not in the vocabulary: move the package to a folder of the table in internal/repocheck/layers_test.go or add a row")
		}
		for part := range strings.SplitSeq(folder, "/") {
			if slices.Contains(bannedFolders, part) {
				violations.add(folder, 0, "folder name %q does not describe the content: name the package for its purpose", part)
			}
		}
	}
	return violations
}

// checkImports finds imports of the module's own packages that do not point to a lower layer, and
// imports of upstream packages outside the upstream layer.
func checkImports(t *tree) (violations findings) {
	t.goFiles(func(f file) {
		from, fromUnit, ok := unit(f.folder())
		if !ok {
			return // checkFolders reports it
		}
		f.imports(func(importPath string, line int) {
			for _, prefix := range upstreamOnly {
				if within(importPath, prefix) && from.name != "upstream" && from.name != "suite" {
					violations.add(f.path, line, "imports %s: only kube/ and node/ may do so; get what you need from one of them through a field", importPath)
				}
			}
			folder, ok := strings.CutPrefix(importPath, module+"/")
			if !ok || allowed(f.folder(), folder, from.name) {
				return
			}
			to, toUnit, exists := unit(folder)
			switch {
			case !exists || fromUnit == toUnit || slices.Contains(from.imports, to.name):
			case from.name == to.name:
				violations.add(f.path, line, "%s imports its sibling %s: take what you need as a field or argument, communicate through the API, or move the shared code to internal/", fromUnit, folder)
			default:
				violations.add(f.path, line, "%s (%s) imports %s (%s): dependencies point down only; %s may import %s. Take what you need as a field or argument",
					fromUnit, from.name, folder, to.name, from.name, strings.Join(slices.Compact(slices.Sorted(slices.Values(from.imports))), ", "))
			}
		})
	})
	return violations
}

// allowed reports whether an import of one of the module's own packages is exempt from the rules
// for layers.
func allowed(from, to, layerName string) bool {
	if layerName != "plumbing" && slices.ContainsFunc(pure, func(p exemption) bool { return p.path == to }) {
		return true
	}
	return slices.ContainsFunc(exceptions, func(e exception) bool { return within(from, e.from) && within(to, e.to) })
}

// checkExceptions finds exceptions that no import needs, although both of their folders exist.
func checkExceptions(t *tree) (violations findings) {
	inUse := map[exception]bool{}
	t.goFiles(func(f file) {
		f.imports(func(importPath string, _ int) {
			folder, ok := strings.CutPrefix(importPath, module+"/")
			for _, e := range exceptions {
				if ok && within(f.folder(), e.from) && within(folder, e.to) {
					inUse[e] = true
				}
			}
		})
	})
	for _, e := range exceptions {
		if t.folders[e.from] && t.folders[e.to] && !inUse[e] {
			violations.add("internal/repocheck/layers_test.go", 0, "nothing in %s imports %s: remove the exception", e.from, e.to)
		}
	}
	return violations
}

// checkMains finds main packages outside the program folders.
func checkMains(t *tree) (violations findings) {
	t.goFiles(func(f file) {
		allowed := slices.ContainsFunc(programFolders, func(e exemption) bool { return within(f.path, e.path) })
		if f.syntax.Name.Name == "main" && !allowed {
			violations.add(f.path, f.line(f.syntax.Name), "package main: programs belong in the folders that internal/repocheck/layers_test.go names, such as cmd/ and hack/")
		}
	})
	return violations
}

// goFolders returns the sorted folders that contain Go files.
func goFolders(t *tree) []string {
	folders := map[string]bool{}
	t.goFiles(func(f file) { folders[f.folder()] = true })
	return slices.Sorted(maps.Keys(folders))
}
