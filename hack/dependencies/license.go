package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// phrases identifies licenses by phrases in their texts. The phrases are in lower case and contain
// only single spaces. A license text matches an entry if it contains all phrases in the entry's
// text field but not the phrase in its without field.
var phrases = []struct {
	license string // the SPDX identifier
	text    []string
	without string // a phrase that only a similar license contains, or ""
}{
	{"Apache-2.0", []string{"apache license", "version 2.0"}, ""},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy"}, ""},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "may be used to endorse or promote products"}, ""},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}, "may be used to endorse or promote products"},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose"}, ""},
	{"ISC", []string{"permission to use, copy, modify, and distribute this software for any purpose"}, ""},
	{"MPL-2.0", []string{"mozilla public license", "version 2.0"}, ""},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}, ""},
	{"LGPL", []string{"gnu lesser general public license"}, "mozilla public license"},
	{"GPL", []string{"gnu general public license"}, "mozilla public license"},
	{"AGPL", []string{"gnu affero general public license"}, "mozilla public license"},
}

// permissive lists the licenses that require only that their texts and notices be included.
var permissive = []string{"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Unlicense"}

// exception describes a linked module whose license files contain a license that is not permissive.
type exception struct {
	licenses []string // the licenses under which the module is used
	reason   string
}

// exceptions maps modules to their exceptions.
var exceptions = map[string]exception{
	"github.com/cyphar/filepath-securejoin":      {[]string{"BSD-3-Clause", "MPL-2.0"}, unchanged},
	"github.com/hashicorp/go-immutable-radix/v2": {[]string{"MPL-2.0"}, unchanged},
	"github.com/hashicorp/go-uuid":               {[]string{"MPL-2.0"}, unchanged},
	"github.com/hashicorp/golang-lru/arc/v2":     {[]string{"MPL-2.0"}, unchanged},
	"github.com/hashicorp/golang-lru/v2":         {[]string{"MPL-2.0"}, unchanged},
	"github.com/spdx/tools-golang":               {[]string{"Apache-2.0"}, "offered under Apache-2.0 or GPL-2.0-or-later"},
}

// unchanged is the reason why modules under MPL-2.0 are accepted.
const unchanged = "binds its own files only, which are used unchanged"

var (
	licenseFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)([-._].*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^notice([-._].*)?$`)
	spaces      = regexp.MustCompile(`\s+`)
)

// licenses returns the licenses under which a module is used, as SPDX identifiers.
func (d dependency) licenses() []string {
	if e, ok := exceptions[d.Path]; ok {
		return e.licenses
	}
	return d.names()
}

// names returns the licenses that a module's license files contain, in the order of phrases.
func (d dependency) names() (all []string) {
	for _, content := range d.files(licenseFile) {
		text := strings.ToLower(plain(content))
		for _, p := range phrases {
			missing := slices.ContainsFunc(p.text, func(phrase string) bool { return !strings.Contains(text, phrase) })
			if missing || p.without != "" && strings.Contains(text, p.without) || slices.Contains(all, p.license) {
				continue
			}
			all = append(all, p.license)
		}
	}
	return all
}

// files returns the contents of the files in the module's root folder whose names match the given
// pattern.
func (d dependency) files(name *regexp.Regexp) (contents []string) {
	entries, err := os.ReadDir(d.Dir)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if !name.MatchString(entry.Name()) || entry.IsDir() {
			continue
		}
		if content, err := os.ReadFile(filepath.Join(d.Dir, entry.Name())); err == nil {
			contents = append(contents, string(content))
		}
	}
	return contents
}

// plain returns text with whitespace collapsed to single spaces.
func plain(text string) string { return strings.TrimSpace(spaces.ReplaceAllString(text, " ")) }

// checkLicenses returns errors for linked modules whose license is unknown, or is not permissive
// and has no exception. It also returns errors for exceptions that are not used.
func checkLicenses(linked []dependency) error {
	var problems []error
	required := map[string]bool{}
	for _, d := range linked {
		licenses := d.names()
		other := slices.ContainsFunc(licenses, func(license string) bool { return !slices.Contains(permissive, license) })
		required[d.Path] = other
		switch {
		case len(licenses) == 0:
			problems = append(problems, fmt.Errorf("%s %s: its license isn't recognized; add a phrase from the license to hack/dependencies/license.go", d.Path, d.Version))
		case other && exceptions[d.Path].reason == "":
			problems = append(problems, fmt.Errorf("%s %s: license %s isn't permissive; leave the module out, or add an exception with its reason to hack/dependencies/license.go",
				d.Path, d.Version, strings.Join(licenses, ", ")))
		}
	}
	for path := range exceptions {
		if !required[path] {
			problems = append(problems, fmt.Errorf("%s: needs no exception; remove it from hack/dependencies/license.go", path))
		}
	}
	return errors.Join(problems...)
}

// checkNotice returns errors for copyright lines that linked modules' notice files contain but
// NOTICE does not.
func checkNotice(notice string, linked []dependency) error {
	notice = plain(notice)
	var problems []error
	for _, d := range linked {
		for _, content := range d.files(noticeFile) {
			for line := range strings.Lines(content) {
				if line = plain(strings.TrimPrefix(line, "// SPDX-FileCopyrightText:")); strings.Contains(line, "Copyright") && !strings.Contains(notice, line) {
					problems = append(problems, fmt.Errorf("%s %s: NOTICE lacks the line %q", d.Path, d.Version, line))
				}
			}
		}
	}
	return errors.Join(problems...)
}
