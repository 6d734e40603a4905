package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

// TestPageIsCurrent also fails if `go run ./hack/dependencies` would fail, for example because a
// dependency has no reason, license or notice.
func TestPageIsCurrent(t *testing.T) {
	root := filepath.Join("..", "..")
	content, err := document(t.Context(), root)
	if err != nil {
		t.Error(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := section.Replace(string(page), content)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(undated(want), undated(string(page))); diff != "" {
		t.Errorf("docs/dependencies.md is not current: run `go run ./hack/dependencies` (-want +got):\n%s", diff)
	}
}

// undated removes the modules' release times, because the go command does not report the release
// times of modules that are only in its cache.
func undated(page string) string {
	return regexp.MustCompile(`\| (\d{4}-\d\d-\d\d)? \|`).ReplaceAllString(page, "| |")
}

func TestDependencyNeedsReason(t *testing.T) {
	reasons := map[string]reason{"example.com/gone": {"ann", "was used once"}, "example.com/used": {"ann", "is used"}}
	err := checkReasons(reasons, []dependency{{Path: "example.com/used"}, {Path: "example.com/new"}})
	want := "example.com/gone: go.mod doesn't require it directly; remove its row from docs/dependencies.tsv\n" +
		"example.com/new: go.mod requires it; add its owner and the reason to docs/dependencies.tsv"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestRowsAreComplete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dependencies.tsv")
	for content, want := range map[string]string{
		"# comment\na\tann\twhy\n": "",
		"a\tann\n":                 ":1: a row is",
		"a\t\twhy\n":               ":1: a row is",
		"a\tann\twhy\na\tb\tc\n":   ":2: a has two rows",
	} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := readReasons(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", content, err, want)
		}
	}
}

// module creates a module's root folder with the given files.
func module(t *testing.T, path string, files map[string]string) dependency {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dependency{Path: path, Version: "v1.0.0", Dir: dir}
}

func TestOtherLicensesAreRejected(t *testing.T) {
	const mit = "Permission is hereby granted, free of charge, to any person\nobtaining a copy of this software"
	const bsd = "Redistribution and use in source and binary forms, with or without modification"
	var fine []dependency
	for path := range exceptions {
		fine = append(fine, module(t, path, map[string]string{"LICENSE": "Mozilla Public License Version 2.0"}))
	}
	for _, test := range []struct{ file, text, license, refusal string }{
		{"LICENSE", mit, "MIT", ""},
		{"LICENCE.txt", mit, "MIT", ""},
		{"COPYING", bsd, "BSD-2-Clause", ""},
		{"LICENSE.md", bsd + " may be used to endorse or promote products", "BSD-3-Clause", ""},
		{"LICENSE", mit + " GNU General Public License", "MIT,GPL", "isn't permissive"},
		{"LICENSE", "GNU Affero General Public License", "AGPL", "isn't permissive"},
		{"LICENSE", "Mozilla Public License, Version 2.0, or the GNU General Public License", "MPL-2.0", "isn't permissive"},
		{"LICENSE", "All rights reserved.", "", "isn't recognized"},
		{"README", mit, "", "isn't recognized"},
	} {
		d := module(t, "example.com/a", map[string]string{test.file: test.text})
		if got := strings.Join(d.names(), ","); got != test.license {
			t.Errorf("%+v: license %q", test, got)
		}
		err := checkLicenses(append(fine, d))
		if (err == nil) != (test.refusal == "") || err != nil && !strings.Contains(err.Error(), test.refusal) {
			t.Errorf("%+v: error %v", test, err)
		}
	}
	if err := checkLicenses(nil); err == nil || !strings.Contains(err.Error(), "needs no exception") {
		t.Errorf("exceptions without modules: %v", err)
	}
}

func TestNoticeHasCopyrights(t *testing.T) {
	linked := []dependency{module(t, "example.com/a", map[string]string{"NOTICE": "A\n// SPDX-FileCopyrightText: Copyright 2026  Ann\nThanks\n"})}
	if err := checkNotice("a:\n  Copyright 2026\n  Ann\n", linked); err != nil {
		t.Error(err)
	}
	if err := checkNotice("a:\n  Copyright 2025 Ann\n", linked); err == nil || !strings.Contains(err.Error(), `"Copyright 2026 Ann"`) {
		t.Errorf("error %v", err)
	}
}

func TestBillListsModulesOfPrograms(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var linked []dependency
	for _, m := range modulesOf(info) {
		d := module(t, m.Path, map[string]string{"LICENSE": "Apache License, Version 2.0"})
		d.Version = m.Version
		linked = append(linked, d)
	}
	programs := []program{{name: "slipway", version: "v1", content: content, info: info}}
	packages := []npmPackage{{Name: "ui", Version: "1.0.0", License: "MIT", SHA512: []byte{1}, Bundled: true}}
	bills := make([]string, 2)
	for i := range bills {
		bill, err := billOf(programs, linked, packages)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).EncodeVersion(bill, cdx.SpecVersion1_6); err != nil {
			t.Fatal(err)
		}
		bills[i] = out.String()
	}
	if bills[0] != bills[1] {
		t.Error("two bills of the same program differ")
	}
	for _, want := range []string{`"pkg:golang/github.com/klauspost/compress@v`, `"pkg:golang/std@`, `"id":"Apache-2.0"`, `"ref":"program:slipway"`, `"pkg:npm/ui@1.0.0"`} {
		if !strings.Contains(bills[0], want) {
			t.Errorf("the bill lacks %s", want)
		}
	}
	if _, err := billOf(programs, linked[1:], nil); err == nil || !strings.Contains(err.Error(), "run: make build") {
		t.Errorf("a module that is not in go.mod: %v", err)
	}
}
