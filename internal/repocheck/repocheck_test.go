package repocheck

import (
	"slices"
	"strings"
	"testing"
)

// rule is a rule for the repository's text files.
type rule struct {
	name  string
	check func(*tree) findings
}

var rules = []rule{
	{"Go files can be parsed", checkSyntax},
	{"folders are in the vocabulary", checkFolders},
	{"imports point down", checkImports},
	{"exceptions are needed", checkExceptions},
	{"programs are in their folders", checkMains},
	{"packages have a doc comment", checkPackageDocs},
	{"exported identifiers have a comment", checkExported},
	{"tests neither skip nor sleep", checkTestCode},
	{"files are short", checkLength},
	{"no machine and no registry is named", checkPlaces},
	{"links have targets", checkLinks},
	{widthRule, checkCommentWidth},
	{cellRule, checkTableCells},
	{"goroutines are waited for", checkGoroutines},
	{loggerRule, checkLogging},
	{"package variables are constant", checkVariables},
}

// Names of the rules that exempt can contain.
const (
	widthRule  = "comments fit the width"
	cellRule   = "cells of tables are short"
	loggerRule = "failures are logged or returned"
)

func TestRules(t *testing.T) {
	repository := loadTree(t)
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			for _, finding := range rule.check(repository) {
				if !isExempt(rule.name, finding) {
					t.Error(finding)
				}
			}
		})
	}
}

// isExempt reports whether a finding is in a folder or file that is exempt from the finding's rule.
func isExempt(rule, finding string) bool {
	place, _, _ := strings.Cut(finding, ":")
	return slices.ContainsFunc(exempt[rule], func(folder string) bool { return within(place, folder) })
}

// TestExemptionsExist also prints the exemptions' state for `make shape`.
func TestExemptionsExist(t *testing.T) {
	repository := loadTree(t)
	for _, rule := range rules {
		if len(exempt[rule.name]) == 0 {
			continue
		}
		findings := rule.check(repository)
		for _, path := range exempt[rule.name] {
			isFile := slices.ContainsFunc(repository.files, func(f file) bool { return f.path == path })
			if !isFile && !repository.folders[path] {
				t.Errorf("rule %q exempts %s, which does not exist: remove the line", rule.name, path)
			}
			count := 0
			for _, finding := range findings {
				if place, _, _ := strings.Cut(finding, ":"); within(place, path) {
					count++
				}
			}
			if count == 0 {
				t.Logf("%s: %s complies; remove it from internal/repocheck/exempt_test.go", rule.name, path)
			} else {
				t.Logf("%s: %d findings in %s, which is exempt", rule.name, count, path)
			}
		}
	}
	for name := range exempt {
		if !slices.ContainsFunc(rules, func(rule rule) bool { return rule.name == name }) {
			t.Errorf("rule %q does not exist: remove its exemptions", name)
		}
	}
}

func TestLayersImportExistingLayers(t *testing.T) {
	for _, l := range layers {
		if len(l.folders) == 0 || len(l.imports) == 0 {
			t.Errorf("layer %q has an empty column", l.name)
		}
		for _, name := range l.imports {
			if !slices.ContainsFunc(layers, func(other layer) bool { return other.name == name }) {
				t.Errorf("layer %q imports %q, which is not in the table", l.name, name)
			}
		}
	}
}

func TestRulesReportViolations(t *testing.T) {
	const doc = "// Package x is here.\n"
	imports := func(path string) string { return "package x\n\nimport _ \"" + path + "\"\n" }
	importOf := func(path string) string { return imports(module + "/" + path) }
	tests := []struct {
		name  string
		check func(*tree) findings
		path  string
		text  string
		want  string // part of the only finding, or empty
	}{
		{"syntax error", checkSyntax, "kube/x.go", "package kube\n\nfunc {\n", "kube/x.go: cannot be parsed"},
		{"unknown folder", checkFolders, "things/x.go", "package x\n", "things: folder is not in the vocabulary"},
		{"folder that contains layers", checkFolders, "apigroup/x.go", "package x\n", "apigroup: folder is not in the vocabulary"},
		{"listed folder", checkFolders, "apigroup/user/store/x.go", "package x\n", ""},
		{"empty name", checkFolders, "kube/util/x.go", "package x\n", `folder name "util" does not describe the content`},

		{"down", checkImports, "apigroup/user/x.go", importOf("apiserver"), ""},
		{"own unit", checkImports, "network/cni/x.go", importOf("network/nat"), ""},
		{"plumbing to plumbing", checkImports, "internal/a/x.go", importOf("internal/b"), ""},
		{"program to its parts", checkImports, "cmd/slipway/x.go", importOf("platform"), ""},
		{"check to its engine", checkImports, "admission/limits/x.go", importOf("admission"), ""},
		{"up", checkImports, "internal/a/x.go", importOf("pki"), "internal/a/x.go:3: internal/a (plumbing) imports pki (identity): dependencies point down only"},
		{"engine to feature", checkImports, "apiserver/x.go", importOf("apigroup/user"), "apiserver (engine) imports apigroup/user (feature)"},
		{"configuration in a part", checkImports, "node/x.go", importOf("config"), "node (upstream) imports config (configuration)"},
		{"test to a higher layer", checkImports, "pki/x_test.go", importOf("platform"), "pki (identity) imports platform (composition)"},
		{"sibling", checkImports, "apigroup/user/x.go", importOf("apigroup/project"), "apigroup/user imports its sibling apigroup/project"},
		{"node to kube", checkImports, "node/x.go", importOf("kube"), "node imports its sibling kube"},
		{"node to the plugin of FlexVolume", checkImports, "node/x.go", importOf("kube/volumeplugin"), "node imports its sibling kube/volumeplugin"},
		{"plugin to the engine of FlexVolume", checkImports, "kube/volumeplugin/x.go", importOf("storage/flexvolume"), ""},
		{"control plane to the engine of FlexVolume", checkImports, "kube/x.go", importOf("storage/flexvolume"), "kube (upstream) imports storage/flexvolume (feature)"},
		{"pure package", checkImports, "node/x.go", importOf("network/hostaddr"), ""},
		{"pure package in plumbing", checkImports, "internal/a/x.go", importOf("network/hostaddr"), "internal/a (plumbing) imports"},
		{"upstream in its layer", checkImports, "kube/x.go", imports("k8s.io/kubernetes/pkg/volume"), ""},
		{"upstream elsewhere", checkImports, "storage/flexvolume/x.go", imports("k8s.io/kubernetes/pkg/volume"), "only kube/ and node/ may do so"},
		{"upstream behind a build tag", checkImports, "cli/x.go", "//go:build windows\n\n" + imports("k8s.io/kubernetes"), "cli/x.go:5"},

		{"program", checkMains, "hack/shape/main.go", "package main\n", ""},
		{"program elsewhere", checkMains, "node/shim/main.go", "package main\n", "node/shim/main.go:1: package main: programs belong in the folders"},
		{"program of tests", checkMains, "test/bench/main.go", "package main\n", ""},
		{"program beside tests", checkMains, "test/benchmark/main.go", "package main\n", "test/benchmark/main.go:1: package main"},

		{"package doc", checkPackageDocs, "pki/x/x.go", doc + "package x\n", ""},
		{"package doc in doc.go", checkPackageDocs, "pki/x/doc.go", doc + "package x\n", ""},
		{"program doc", checkPackageDocs, "cmd/oc/main.go", "// Command oc is here.\npackage main\n", ""},
		{"doc of a package of tests", checkPackageDocs, "test/scenario/x/any_test.go", doc + "package x\n", ""},
		{"no package doc", checkPackageDocs, "pki/x/x.go", "package x\n", "pki/x: package has no doc comment"},
		{"package doc in another file", checkPackageDocs, "pki/x/other.go", doc + "package x\n", "move it to x.go or doc.go"},
		{"wrong first words", checkPackageDocs, "pki/x/x.go", "// The x package is here.\npackage x\n", `begins with "The x package"`},

		{"commented", checkExported, "pki/x.go", "package x\n\n// A is.\nvar A, B int\n\n// C are.\nconst (\n\tC = 1\n\tD = 2\n)\n\ntype (\n\tE int // is\n)\n", ""},
		{"of an unexported type", checkExported, "pki/x.go", "package x\n\nfunc (*a[T]) B() {}\n", ""},
		{"function", checkExported, "pki/x.go", "package x\n\nfunc A() {}\n", "pki/x.go:3: exported A has no comment"},
		{"method", checkExported, "pki/x.go", "package x\n\nfunc (a *A[T]) B() {}\n", "exported B has no comment"},
		{"type", checkExported, "pki/x.go", "package x\n\ntype A int\n", "exported A has no comment"},
		{"variable", checkExported, "pki/x.go", "package x\n\nvar (\n\ta int\n\tB int\n)\n", "pki/x.go:5: exported B has no comment"},

		{"waiting test", checkTestCode, "pki/x_test.go", "package x\n\nfunc TestA(t *testing.T) { <-time.After(1); reader.Skip(2) }\n", ""},
		{"sleep outside tests", checkTestCode, "pki/x.go", "package x\n\nfunc a() { time.Sleep(1) }\n", ""},
		{"skip", checkTestCode, "pki/x_test.go", "package x\n\nfunc TestA(t *testing.T) { t.Skipf(\"no\") }\n", "pki/x_test.go:3: t.Skipf: a skipped test hides a gap"},
		{"skip in a helper", checkTestCode, "test/kit/x.go", "package kit\n\nfunc a(tb testing.TB) { tb.SkipNow() }\n", "tb.SkipNow"},
		{"sleep", checkTestCode, "pki/x_test.go", "package x\n\nfunc TestA(t *testing.T) {\n\ttime.Sleep(1)\n}\n", "pki/x_test.go:4: time.Sleep"},

		{"short file", checkLength, "pki/x.go", strings.Repeat("\n", 500), ""},
		{"long file", checkLength, "pki/x.sh", strings.Repeat("\n", 501), "501 lines, limit 500"},
		{"long main", checkLength, "cmd/slipway/main.go", strings.Repeat("\n", 51), "51 lines, limit 50"},
		{"exempt file", checkLength, "go.sum", strings.Repeat("\n", 5000), ""},

		{"path of our own", checkPlaces, "a.md", "in upper/work/ and ${dir}/root/ and /workshop/\n", ""},
		{"path of a machine", checkPlaces, "a.sh", "\ncd " + "/work" + "/main\n", "a.sh:2: names \"/work" + "/\""},
		{"home of root", checkPlaces, "a.sh", "HOME=" + "/root" + "/x\n", "a path of one machine"},
		{"example host", checkPlaces, "a.yaml", "image: registry.example.com/app\n", ""},
		{"registry", checkPlaces, "a.yaml", "image: docker" + ".io/app\n", "a.yaml:1: names \"docker" + ".io\", the host of a registry"},
		{"sums of modules", checkPlaces, "go.sum", "gcr" + ".io/x v1 h1:=\n", ""},

		{"comment that fits", checkCommentWidth, "pki/x.go", doc + "package x // " + strings.Repeat("é", 87) + "\n", ""},
		{"wide comment", checkCommentWidth, "pki/x.go", "package x // is " + strings.Repeat("é", 85) + "\n", "pki/x.go:1: comment of 101 columns"},
		{"wide line of a block", checkCommentWidth, "pki/x.go", "package x\n\n/*\n" + strings.Repeat("is ", 34) + "\n*/\n", "pki/x.go:4: comment of 102 columns"},
		{"wide code", checkCommentWidth, "pki/x.go", "package x\n\nvar a = `" + strings.Repeat("// ", 40) + "`\n", ""},
		{"address", checkCommentWidth, "pki/x.go", "package x\n\n// https://" + strings.Repeat("a", 100) + "\n", ""},
		{"preformatted", checkCommentWidth, "pki/x.go", "package x\n\n//\tgo run " + strings.Repeat("a ", 50) + "\n", ""},

		{"short cells", checkTableCells, "docs/a.md", "| " + strings.Repeat("a ", 25) + "| " + strings.Repeat("a ", 25) + "|\n", ""},
		{"long cell", checkTableCells, "docs/a.md", "\n| a | " + strings.Repeat("a ", 26) + "|\n", "docs/a.md:2: cell of 26 words (a a a ...)"},
		{"long line of code", checkTableCells, "docs/a.md", "```\n| " + strings.Repeat("a ", 26) + "|\n```\n", ""},

		{"goroutine", checkGoroutines, "pki/x.go", "package x\n\nfunc a() { go b() }\n", "pki/x.go:3: a starts a goroutine and does not wait"},
		{"goroutine that waits for a channel", checkGoroutines, "pki/x.go", "package x\n\nfunc a() { go func() { <-b }() }\n", "does not wait"},
		{"wait for the context", checkGoroutines, "pki/x.go", "package x\n\nfunc a() { go b(); <-ctx.Done() }\n", "does not wait"},
		{"wait for a channel", checkGoroutines, "pki/x.go", "package x\n\nfunc a() { go b(); <-done }\n", ""},
		{"wait for a group", checkGoroutines, "pki/x.go", "package x\n\nfunc a() { go b(); defer group.Wait() }\n", ""},
		{"detached goroutine", checkGoroutines, "cmd/slipway/command/up.go", "package x\n\nfunc detach() { go b() }\n", ""},

		{"log or return", checkLogging, "pki/x.go", "package x\n\nfunc a() error {\n\tif b {\n\t\tslog.Error(\"c\")\n\t}\n\treturn err\n}\n", ""},
		{"log and return", checkLogging, "pki/x.go", "package x\n\nfunc a() error {\n\tslog.Error(\"c\")\n\treturn err\n}\n", "pki/x.go:4: logs a failure and returns it"},
		{"log and wrap in a case", checkLogging, "pki/x.go", "package x\n\nfunc a() error {\n\tswitch {\n\tcase b:\n\t\tslog.Error(\"c\")\n\t\treturn fmt.Errorf(\"c\")\n\t}\n}\n", "pki/x.go:6:"},
		{"log in plumbing", checkLogging, "internal/a/x.go", imports("log/slog"), "imports log/slog: a package of the layer \"plumbing\" returns errors"},
		{"log in a feature", checkLogging, "router/x.go", imports("log/slog"), ""},

		{"constant", checkVariables, "pki/x.go", "package x\n\nvar a, b = regexp.MustCompile(`c`), []byte(`d`)\n", ""},
		{"embedded file", checkVariables, "pki/x.go", "package x\n\n//go:embed x.txt\nvar a string\n", ""},
		{"interface that a type has", checkVariables, "pki/x.go", "package x\n\nvar _ a = (*b)(nil)\n", ""},
		{"variable without a value", checkVariables, "pki/x.go", "package x\n\nvar a int\n", "pki/x.go:3: package variable a is set later"},
		{"computed variable", checkVariables, "pki/x.go", "package x\n\nvar a = b.Load()\n", "package variable a calls b.Load when the package is loaded"},
		{"function literal", checkVariables, "pki/x.go", "package x\n\nvar a = func() int { return 1 }()\n", "calls a function literal"},
		{"init function", checkVariables, "pki/x.go", "package x\n\nfunc init() {}\n", "pki/x.go:3: init function"},

		{"links", checkLinks, "docs/a.md", "[a](a.md#top) [b](#here) [c](https://example.com/x) [d](../docs) `[e](gone.md)`\n\n```\n[f](gone.md)\n```\n", ""},
		{"dead link", checkLinks, "docs/a.md", "\n[a](b.md#top)\n", "docs/a.md:2: link to \"b.md#top\": docs/b.md does not exist"},
		{"dead picture", checkLinks, "docs/a.md", "![a](pictures/b.svg \"title\")\n", "docs/pictures/b.svg does not exist"},
		{"dead reference", checkLinks, "docs/a.md", "[a][b]\n\n[b]: b.md\n", "docs/a.md:3: link to"},
		{"absolute link", checkLinks, "docs/a.md", "[a](/docs/a.md)\n", "write the path relative to this file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.check(newTree(map[string]string{tt.path: tt.text}))
			switch {
			case tt.want == "" && len(got) > 0:
				t.Errorf("found %q, want nothing", got)
			case tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)):
				t.Errorf("found %q, want one finding that contains %q", got, tt.want)
			}
		})
	}
}

func TestUnneededExceptionIsReported(t *testing.T) {
	texts := map[string]string{"kube/volumeplugin/x.go": "package x\n", "storage/flexvolume/x.go": "package x\n"}
	want := findings{"internal/repocheck/layers_test.go: nothing in kube/volumeplugin imports storage/flexvolume: remove the exception"}
	if got := checkExceptions(newTree(texts)); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	texts["kube/volumeplugin/x.go"] += "\nimport _ \"" + module + "/storage/flexvolume\"\n"
	if got := checkExceptions(newTree(texts)); got != nil {
		t.Errorf("found %q, want nothing", got)
	}
}
