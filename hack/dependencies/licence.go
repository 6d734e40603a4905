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

// phrases identify licences, in lower case and with single spaces. A licence matches if the text
// contains all phrases of its row.
var phrases = []struct {
	licence string // the SPDX identifier
	text    []string
	without string // a phrase that another licence adds
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

// permissive are the licences that only require their text and notice.
var permissive = []string{"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Unlicense"}

// exception is a linked module whose files name licences that are not permissive.
type exception struct {
	licences []string // the licence under which it is used
	reason   string
}

// exceptions contains the exceptions by module.
var exceptions = map[string]exception{
	"github.com/cyphar/filepath-securejoin":      {[]string{"BSD-3-Clause", "MPL-2.0"}, unchanged},
	"github.com/hashicorp/go-immutable-radix/v2": {[]string{"MPL-2.0"}, unchanged},
	"github.com/hashicorp/golang-lru/arc/v2":     {[]string{"MPL-2.0"}, unchanged},
	"github.com/hashicorp/golang-lru/v2":         {[]string{"MPL-2.0"}, unchanged},
	"github.com/spdx/tools-golang":               {[]string{"Apache-2.0"}, "offered under Apache-2.0 or GPL-2.0-or-later"},
}

// unchanged is the reason why MPL-2.0 is accepted.
const unchanged = "binds its own files only, which are used unchanged"

var (
	licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)([-._].*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^notice([-._].*)?$`)
	spaces      = regexp.MustCompile(`\s+`)
)

// licences returns the licences under which a module is used, as SPDX identifiers.
func (d dependency) licences() []string {
	if e, ok := exceptions[d.Path]; ok {
		return e.licences
	}
	return d.names()
}

// names returns the licences that the files of a module name, in the order of phrases.
func (d dependency) names() (all []string) {
	for _, content := range d.files(licenceFile) {
		text := strings.ToLower(plain(content))
		for _, p := range phrases {
			missing := slices.ContainsFunc(p.text, func(phrase string) bool { return !strings.Contains(text, phrase) })
			if missing || p.without != "" && strings.Contains(text, p.without) || slices.Contains(all, p.licence) {
				continue
			}
			all = append(all, p.licence)
		}
	}
	return all
}

// files returns the contents of the files in the module's root folder whose names match.
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

// plain returns text on one line.
func plain(text string) string { return strings.TrimSpace(spaces.ReplaceAllString(text, " ")) }

// checkLicences reports linked modules whose licence is unknown, or neither permissive nor an
// exception, and exceptions without need.
func checkLicences(linked []dependency) error {
	var problems []error
	required := map[string]bool{}
	for _, d := range linked {
		licences := d.names()
		other := slices.ContainsFunc(licences, func(licence string) bool { return !slices.Contains(permissive, licence) })
		required[d.Path] = other
		switch {
		case len(licences) == 0:
			problems = append(problems, fmt.Errorf("%s %s: its licence isn't recognized; add a phrase of it to hack/dependencies/licence.go", d.Path, d.Version))
		case other && exceptions[d.Path].reason == "":
			problems = append(problems, fmt.Errorf("%s %s: licence %s isn't permissive; leave the module out, or add an exception with its reason to hack/dependencies/licence.go",
				d.Path, d.Version, strings.Join(licences, ", ")))
		}
	}
	for path := range exceptions {
		if !required[path] {
			problems = append(problems, fmt.Errorf("%s: needs no exception; remove it from hack/dependencies/licence.go", path))
		}
	}
	return errors.Join(problems...)
}

// checkNotice reports lines with a copyright in the notices of linked modules that our NOTICE
// lacks.
func checkNotice(notice string, linked []dependency) error {
	notice = plain(notice)
	var problems []error
	for _, d := range linked {
		for _, content := range d.files(noticeFile) {
			for line := range strings.Lines(content) {
				if line = plain(strings.TrimPrefix(line, "// SPDX-FileCopyrightText:")); strings.Contains(line, "Copyright") && !strings.Contains(notice, line) {
					problems = append(problems, fmt.Errorf("%s %s: NOTICE lacks its line %q", d.Path, d.Version, line))
				}
			}
		}
	}
	return errors.Join(problems...)
}
