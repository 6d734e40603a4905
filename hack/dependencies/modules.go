package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/slipway-platform/slipway/internal/payload/recipe"
)

// dependency describes a module at the version that is used.
type dependency struct {
	Path, Version, Dir string
	// Time is the version's release time. It is zero if the go command does not report the release
	// time.
	Time     time.Time
	Replace  *dependency
	programs []string // the programs that contain the module
}

// withUse returns the module's replacement with the module's own path. If the module has no
// replacement, it returns the module.
func (d dependency) withUse() dependency {
	if d.Replace != nil {
		d.Version, d.Dir, d.Time, d.Replace = d.Replace.Version, d.Replace.Dir, d.Replace.Time, nil
	}
	return d
}

// directModules returns the modules that go.mod requires directly, and the modules of the tools in
// go.mod.
func directModules(ctx context.Context, root string) ([]dependency, error) {
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	file, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, required := range file.Require {
		tool := slices.ContainsFunc(file.Tool, func(t *modfile.Tool) bool {
			return t.Path == required.Mod.Path || strings.HasPrefix(t.Path, required.Mod.Path+"/")
		})
		if tool || !required.Indirect {
			paths = append(paths, required.Mod.Path)
		}
	}
	return list[dependency](ctx, root, nil, append([]string{"-m", "-json"}, paths...)...)
}

// target is a program for one operating system.
type target struct {
	name, pkg, system string
	tags              []string
	cgo               bool
}

// targets returns the programs in a release.
func targets() []target {
	all := []target{{name: "slipway", pkg: "./cmd/slipway", system: "linux"}}
	for _, system := range []string{"linux", "darwin", "windows"} {
		all = append(all, target{name: "oc", pkg: "./cmd/oc", system: system})
	}
	for _, r := range recipe.All() {
		all = append(all, target{name: r.Name, pkg: r.Package, system: "linux", tags: r.Tags, cgo: r.CGO})
	}
	return all
}

// linkedModules returns the modules that the programs in a release contain.
func linkedModules(ctx context.Context, root string) ([]dependency, error) {
	linked := map[string]dependency{}
	for _, t := range targets() {
		cgo := "CGO_ENABLED=0"
		if t.cgo {
			cgo = "CGO_ENABLED=1"
		}
		type entry struct{ Module *dependency }
		packages, err := list[entry](ctx, root, []string{"GOOS=" + t.system, cgo},
			"-deps", "-json=Module", "-tags", strings.Join(t.tags, ","), t.pkg)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			if p.Module == nil || p.Module.Version == "" { // the standard library and this repository
				continue
			}
			module, ok := linked[p.Module.Path]
			if !ok {
				module = p.Module.withUse()
			}
			if !slices.Contains(module.programs, t.name) {
				module.programs = append(module.programs, t.name)
			}
			linked[module.Path] = module
		}
	}
	var all []dependency
	for _, module := range linked {
		all = append(all, module)
	}
	slices.SortFunc(all, func(a, b dependency) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// list returns the decoded JSON output of `go list`.
func list[T any](ctx context.Context, root string, environment []string, arguments ...string) (all []T, err error) {
	command := exec.CommandContext(ctx, "go", append([]string{"list"}, arguments...)...)
	command.Dir, command.Stderr = root, os.Stderr
	command.Env = append(os.Environ(), environment...)
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var next T
		if err := decoder.Decode(&next); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode output of go list: %w", err)
		}
		all = append(all, next)
	}
}
