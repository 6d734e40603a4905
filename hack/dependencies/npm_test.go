package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const lockFile = `{"packages": {
	"": {"dependencies": {"ui": "1.0.0"}, "devDependencies": {"builder": "2.0.0"}},
	"node_modules/ui": {"version": "1.0.0", "license": "MIT", "integrity": "sha512-AAEC"},
	"node_modules/ui/node_modules/@scope/part": {"version": "1.1.0", "license": "GPL-3.0", "integrity": "sha512-AAEC"},
	"node_modules/builder": {"version": "2.0.0", "license": "GPL-3.0", "integrity": "sha512-AAEC", "dev": true},
	"node_modules/of-builder": {"version": "3.0.0", "license": "MIT", "integrity": "sha512-AAEC", "dev": true}
}}`

func TestPackagesOfConsoleAreChecked(t *testing.T) {
	packages, err := readLock("lock", []byte(lockFile))
	if err != nil {
		t.Fatal(err)
	}
	hash := []byte{0, 1, 2}
	want := []npmPackage{
		{"@scope/part", "1.1.0", "GPL-3.0", hash, false, true},
		{"builder", "2.0.0", "GPL-3.0", hash, true, false},
		{"ui", "1.0.0", "MIT", hash, true, true},
	}
	if diff := cmp.Diff(want, packages); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	reasons := map[string]reason{"npm:ui": {"Ann", "pages"}, "npm:gone": {"Ann", "was used once"}, "example.com/module": {"Ann", "is Go"}}
	err = checkNPM(reasons, packages)
	refusals := "npm:@scope/part 1.1.0: license \"GPL-3.0\" isn't permissive; leave the package out\n" +
		"npm:builder: console/web/package.json names it; add its owner and the reason to docs/dependencies.tsv\n" +
		"npm:gone: console/web/package.json doesn't name it; remove its row from docs/dependencies.tsv"
	if err == nil || err.Error() != refusals {
		t.Errorf("error %v", err)
	}
	if got := describeNPM(packages[0]); got.PackageURL != "pkg:npm/%40scope/part@1.1.0" || (*got.Hashes)[0].Value != "000102" {
		t.Errorf("component %+v", got)
	}
	if _, err := readLock("lock", []byte(strings.ReplaceAll(lockFile, "sha512-AAEC", ""))); err == nil {
		t.Error("a package without a hash is accepted")
	}
}
