package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// module is the import path of the repository's root folder.
const module = "github.com/slipway-platform/slipway"

// rules is the package whose tests read all files of the repository.
const rules = module + "/internal/repocheck"

// graph maps each package in the module to the packages that it and its tests import.
type graph map[string][]string

// loadPackages returns the packages in the module. For a package that does not build, it returns
// the imports that the go tool can read.
func loadPackages() (graph, error) {
	out, err := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	packages := graph{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode output of go list: %w", err)
		}
		packages[pkg.ImportPath] = slices.Concat(pkg.Imports, pkg.TestImports, pkg.XTestImports)
	}
}

// changed returns the packages that the given files belong to. A file belongs to the nearest
// enclosing folder that is a package. If any file changed, the result also contains rules, because
// its tests read every file. If go.mod or go.sum changed, the result contains all packages.
func (g graph) changed(files []string) []string {
	paths := map[string]bool{rules: len(files) > 0}
	for _, file := range files {
		if file == "go.mod" || file == "go.sum" {
			return g.withoutSlow(slices.Collect(maps.Keys(g)))
		}
		for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
			if _, ok := g[module+"/"+folder]; ok {
				paths[module+"/"+folder] = true
				break
			}
		}
	}
	maps.DeleteFunc(paths, func(_ string, changed bool) bool { return !changed })
	return g.withoutSlow(slices.Collect(maps.Keys(paths)))
}

// affected returns the packages in paths, and all packages that import any of them directly or
// indirectly.
func (g graph) affected(paths []string) []string {
	importers := map[string][]string{}
	for pkg, imports := range g {
		for _, dependency := range imports {
			importers[dependency] = append(importers[dependency], pkg)
		}
	}
	seen := map[string]bool{}
	for queue := slices.Clone(paths); len(queue) > 0; queue = queue[1:] {
		if pkg := queue[0]; !seen[pkg] {
			seen[pkg] = true
			queue = append(queue, importers[pkg]...)
		}
	}
	return g.withoutSlow(slices.Collect(maps.Keys(seen)))
}

// withoutSlow returns the sorted packages, except packages whose tests take minutes.
func (graph) withoutSlow(paths []string) []string {
	slices.Sort(paths)
	return slices.DeleteFunc(paths, func(pkg string) bool {
		return slices.ContainsFunc([]string{"/test/scenario/", "/test/s3", "/test/faults", "/test/measure", "/test/netpol"}, func(slow string) bool { return strings.HasPrefix(pkg, module+slow) })
	})
}
