package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// npmPrefix is the prefix of npm packages in docs/dependencies.tsv.
const npmPrefix = "npm:"

// npmPackage describes a package in the web console's lock file.
type npmPackage struct {
	Name, Version string
	// License is the SPDX identifier that the package declares.
	License string
	// SHA512 is the hash of the package's archive.
	SHA512 []byte
	// Direct means that package.json lists the package. Bundled means that the package can be part
	// of the console; all other packages are only used to build and test it.
	Direct, Bundled bool
}

// unconditional lists the licenses without requirements. Only npm packages use them.
var unconditional = []string{"0BSD", "CC0-1.0"}

// npmPackages returns the bundled packages, and the other packages that package.json lists. They
// are sorted by name.
func npmPackages(root string) ([]npmPackage, error) {
	path := filepath.Join(root, "console", "web", "package-lock.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return readLock(path, data)
}

func readLock(path string, data []byte) ([]npmPackage, error) {
	var lock struct {
		Packages map[string]struct {
			Version, License, Integrity   string
			Dev, Optional, DevOptional    bool
			Dependencies, DevDependencies map[string]string
		}
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	root := lock.Packages[""]
	var all []npmPackage
	for folder, p := range lock.Packages {
		name, ok := strings.CutPrefix(folder[max(0, strings.LastIndex(folder, "node_modules/")):], "node_modules/")
		if !ok {
			continue
		}
		top := folder == "node_modules/"+name
		direct := top && (root.Dependencies[name] != "" || root.DevDependencies[name] != "")
		bundled := !p.Dev && !p.DevOptional
		if !direct && !bundled {
			continue
		}
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Integrity, "sha512-"))
		if err != nil || len(sum) == 0 {
			return nil, fmt.Errorf("%s: package %s has no SHA-512 hash; run: npm install", path, name)
		}
		all = append(all, npmPackage{name, p.Version, p.License, sum, direct, bundled})
	}
	slices.SortFunc(all, func(a, b npmPackage) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// checkNPM returns errors for bundled packages whose license is not permissive, for direct packages
// without a row, and for rows without a package.
func checkNPM(reasons map[string]reason, packages []npmPackage) error {
	var problems []error
	for _, p := range packages {
		if p.Bundled && !slices.Contains(unconditional, p.License) && !slices.Contains(permissive, p.License) {
			problems = append(problems, fmt.Errorf("%s%s %s: license %q isn't permissive; leave the package out", npmPrefix, p.Name, p.Version, p.License))
		}
		if _, ok := reasons[npmPrefix+p.Name]; p.Direct && !ok {
			problems = append(problems, fmt.Errorf("%s%s: console/web/package.json names it; add its owner and the reason to docs/dependencies.tsv", npmPrefix, p.Name))
		}
	}
	for name := range reasons {
		desired, npm := strings.CutPrefix(name, npmPrefix)
		if npm && !slices.ContainsFunc(packages, func(p npmPackage) bool { return p.Direct && p.Name == desired }) {
			problems = append(problems, fmt.Errorf("%s: console/web/package.json doesn't name it; remove its row from docs/dependencies.tsv", name))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}

// npmTables returns a table of the packages that package.json lists and a table of all bundled
// packages.
func npmTables(reasons map[string]reason, packages []npmPackage) string {
	var direct, bundled strings.Builder
	directCount, bundledCount := 0, 0
	for _, p := range packages {
		if p.Direct {
			directCount++
			reason := reasons[npmPrefix+p.Name]
			fmt.Fprintf(&direct, "| %s | %s | %s | %s | %s |\n", p.Name, p.Version, p.License, reason.owner, reason.text)
		}
		if p.Bundled {
			bundledCount++
			fmt.Fprintf(&bundled, "| %s | %s | %s |\n", p.Name, p.Version, p.License)
		}
	}
	return fmt.Sprintf("\n## Required by the web console (%d)\n\n| package | version | license | owner | why |\n|---|---|---|---|---|\n%s",
		directCount, direct.String()) +
		fmt.Sprintf("\n## Bundled into the web console (%d)\n\n| package | version | license |\n|---|---|---|\n%s", bundledCount, bundled.String())
}

// describeNPM returns a package's CycloneDX component.
func describeNPM(p npmPackage) cdx.Component {
	identity := "pkg:npm/" + strings.Replace(p.Name, "@", "%40", 1) + "@" + p.Version
	return cdx.Component{
		BOMRef: identity, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: identity,
		Licenses:    &cdx.Licenses{{License: &cdx.License{ID: p.License}}},
		Hashes:      &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: hex.EncodeToString(p.SHA512)}},
		Description: "bundled into the web console",
	}
}
