package main

import (
	"slices"
	"strings"
	"testing"
)

func testGraph(lines ...string) graph {
	g := graph{rules: nil}
	for _, line := range lines {
		names := strings.Fields(line)
		for i := range names {
			names[i] = module + "/" + names[i]
		}
		g[names[0]] = names[1:]
	}
	return g
}

func short(paths []string) string {
	return strings.ReplaceAll(strings.Join(paths, " "), module+"/", "")
}

func TestChangedPackages(t *testing.T) {
	g := testGraph("cli internal/redact", "internal/redact", "test/scenario/boot", "test/s3")
	tests := []struct{ name, files, want string }{
		{"nothing", "", ""},
		{"file of a package", "cli/cli.go", "cli internal/repocheck"},
		{"data below a package", "cli/testdata/login/a.txt", "cli internal/repocheck"},
		{"file outside packages", "docs/compat.md", "internal/repocheck"},
		{"scenario", "test/scenario/boot/boot_test.go", "internal/repocheck"},
		{"requirements", "go.mod", "cli internal/redact internal/repocheck"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := short(g.changed(strings.Fields(tt.files))); got != tt.want {
				t.Errorf("changed packages %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAffectedPackagesImportChangedOnes(t *testing.T) {
	g := testGraph("cmd/oc cli", "cli cli/login internal/redact", "cli/login internal/redact", "internal/redact", "pki", "test/scenario/boot cli")
	if got, want := short(g.affected([]string{module + "/cli/login"})), "cli cli/login cmd/oc"; got != want {
		t.Errorf("affected packages %q, want %q", got, want)
	}
}

func TestPackagesOfThisModule(t *testing.T) {
	g, err := loadPackages()
	if err != nil {
		t.Fatal(err)
	}
	if imports, ok := g[module+"/hack/affected"]; !ok || !slices.Contains(imports, "encoding/json") {
		t.Errorf("the imports of this package are %v", imports)
	}
}

func TestMissingBaseIsReported(t *testing.T) {
	if err := run(nil, "no-such-branch", false); err == nil || !strings.Contains(err.Error(), `"no-such-branch"`) {
		t.Errorf("error %v, want an error with the name of the branch", err)
	}
}
