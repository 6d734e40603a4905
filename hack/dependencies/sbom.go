package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/klauspost/compress/zstd"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/payload/recipe"
)

// program is a built program with its build information.
type program struct {
	name, version string
	embedded      bool // slipway embeds the program
	content       []byte
	info          *buildinfo.BuildInfo
	libraries     []cdx.Component // parts that are not Go modules
}

// writeBill writes the bill of materials for the programs in bin and the programs that slipway
// embeds, in CycloneDX format. It reads the build information in the programs, so the same programs
// always result in the same bill.
func writeBill(ctx context.Context, root, path, release string) error {
	programs, err := builtPrograms(ctx, root, release)
	if err != nil {
		return err
	}
	linked, err := linkedModules(ctx, root)
	if err != nil {
		return err
	}
	if err := checkLicenses(linked); err != nil {
		return err
	}
	packages, err := npmPackages(root)
	if err != nil {
		return err
	}
	if err := checkNPM(nil, bundled(packages)); err != nil {
		return err
	}
	bill, err := billOf(programs, linked, bundled(packages))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(bill, cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("encode bill of materials: %w", err)
	}
	return atomicfile.Write(path, out.Bytes(), 0o644)
}

// builtPrograms returns the programs that `make build` has built.
func builtPrograms(ctx context.Context, root, release string) (programs []program, err error) {
	for _, name := range []string{"slipway", "oc"} {
		content, err := os.ReadFile(filepath.Join(root, "bin", name))
		if err != nil {
			return nil, fmt.Errorf("%w; run: make build", err)
		}
		programs = append(programs, program{name: name, version: release, content: content})
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	for _, r := range recipe.All() {
		archive, err := os.ReadFile(filepath.Join(root, "internal", "payload", "files", r.Name+".zst"))
		if err != nil {
			return nil, fmt.Errorf("%w; run: make build", err)
		}
		content, err := decoder.DecodeAll(archive, nil)
		if err != nil {
			return nil, fmt.Errorf("decompress %q: %w", r.Name, err)
		}
		p := program{name: r.Name, version: release, content: content, embedded: true}
		if r.CGO {
			if p.libraries, err = hostLibraries(ctx, content); err != nil {
				return nil, fmt.Errorf("read libraries of %q: %w", r.Name, err)
			}
		}
		programs = append(programs, p)
	}
	for i := range programs {
		p := &programs[i]
		if p.info, err = buildinfo.Read(bytes.NewReader(p.content)); err != nil {
			return nil, fmt.Errorf("read modules of program %q: %w", p.name, err)
		}
		if p.info.Main.Sum != "" { // the program belongs to another project
			p.version = p.info.Main.Version
		}
	}
	return programs, ctx.Err()
}

// bundled returns the packages that can be part of the console, which slipway embeds.
func bundled(packages []npmPackage) (all []npmPackage) {
	for _, p := range packages {
		if p.Bundled {
			p.Direct = false // The bill contains no reasons.
			all = append(all, p)
		}
	}
	return all
}

// billOf returns a bill of materials for the programs and the modules in their build information.
// linked contains the modules' licenses. packages lists the npm packages that are part of slipway.
func billOf(programs []program, linked []dependency, packages []npmPackage) (*cdx.BOM, error) {
	byName := map[string]dependency{}
	for _, d := range linked {
		byName[d.Path+"@"+d.Version] = d
	}
	libraries := map[string]cdx.Component{}
	var components []cdx.Component
	var links []cdx.Dependency
	for _, p := range programs {
		uses := []string{standardLibrary(p.info.GoVersion).BOMRef}
		libraries[uses[0]] = standardLibrary(p.info.GoVersion)
		for _, module := range modulesOf(p.info) {
			d, ok := byName[module.Path+"@"+module.Version]
			if !ok {
				return nil, fmt.Errorf("program %q has %s %s, which go.mod doesn't name; run: make build", p.name, module.Path, module.Version)
			}
			library := describe(module, d.licenses())
			libraries[library.BOMRef] = library
			uses = append(uses, library.BOMRef)
		}
		if p.name == "slipway" {
			for _, bundle := range packages {
				p.libraries = append(p.libraries, describeNPM(bundle))
			}
		}
		for _, library := range p.libraries {
			libraries[library.BOMRef] = library
			uses = append(uses, library.BOMRef)
		}
		slices.Sort(uses)
		ref := "program:" + p.name
		sum := sha256.Sum256(p.content)
		component := cdx.Component{
			BOMRef: ref, Type: cdx.ComponentTypeApplication, Name: p.name, Version: p.version,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		}
		if p.embedded {
			component.Description = "embedded in slipway"
		}
		components = append(components, component)
		links = append(links, cdx.Dependency{Ref: ref, Dependencies: &uses})
	}
	for _, ref := range slices.Sorted(maps.Keys(libraries)) {
		components = append(components, libraries[ref])
	}
	bill := cdx.NewBOM()
	bill.Metadata = &cdx.Metadata{Component: &cdx.Component{BOMRef: "slipway", Type: cdx.ComponentTypePlatform, Name: "Slipway", Version: programs[0].version}}
	bill.Components, bill.Dependencies = &components, &links
	return bill, nil
}

// modulesOf returns the modules that a program contains, except this repository's module.
func modulesOf(info *buildinfo.BuildInfo) (modules []debug.Module) {
	if info.Main.Sum != "" {
		modules = append(modules, info.Main)
	}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = &debug.Module{Path: module.Path, Version: module.Replace.Version, Sum: module.Replace.Sum}
		}
		// A program from another project lists this repository's module with the version (devel).
		if module.Version != "(devel)" {
			modules = append(modules, *module)
		}
	}
	return modules
}

// describe returns a module's CycloneDX component.
func describe(module debug.Module, licenses []string) cdx.Component {
	identity := "pkg:golang/" + module.Path + "@" + strings.ReplaceAll(module.Version, "+", "%2B")
	component := cdx.Component{
		BOMRef: identity, Type: cdx.ComponentTypeLibrary, Name: module.Path, Version: module.Version, PackageURL: identity,
		Licenses: &cdx.Licenses{},
	}
	for _, license := range licenses {
		*component.Licenses = append(*component.Licenses, cdx.LicenseChoice{License: &cdx.License{ID: license}})
	}
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:")); err == nil && len(sum) > 0 {
		component.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return component
}

// standardLibrary returns the CycloneDX component of Go's standard library.
func standardLibrary(release string) cdx.Component {
	return describe(debug.Module{Path: "std", Version: strings.TrimPrefix(release, "go")}, []string{"BSD-3-Clause"})
}

// hostLibraries returns the build host's libraries that runc contains. It includes their versions
// if `runc --version` prints them.
func hostLibraries(ctx context.Context, runc []byte) ([]cdx.Component, error) {
	dir, err := os.MkdirTemp("", "slipway-runc-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "runc")
	if err := os.WriteFile(path, runc, 0o700); err != nil {
		return nil, err
	}
	output, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return nil, err
	}
	library := func(name, version, license string) cdx.Component {
		return cdx.Component{
			BOMRef: "library:" + name, Type: cdx.ComponentTypeLibrary, Name: name, Version: version,
			Licenses: &cdx.Licenses{{License: &cdx.License{ID: license}}}, Description: "of the host that built runc",
		}
	}
	_, seccomp, _ := strings.Cut(string(output), "libseccomp:")
	seccomp, _, _ = strings.Cut(strings.TrimSpace(seccomp), "\n")
	return []cdx.Component{library("glibc", "", "LGPL-2.1-or-later"), library("libseccomp", seccomp, "LGPL-2.1-only")}, nil
}
