package repocheck

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// machinePath matches paths that exist on only one machine. A path that is preceded by a name, such
// as upper/work/, is one of the repository's own paths.
var machinePath = regexp.MustCompile(`(?:^|[^\w.$})/*-])(/(?:work|root)/)`)

// registryHost matches hosts that serve images or modules. Only exempt files may contain them,
// because nothing in the repository depends on a network.
var registryHost = regexp.MustCompile(`\b(?:docker\.io|quay\.io|gcr\.io|ghcr\.io|registry\.k8s\.io|registry\.redhat\.io|` +
	`registry\.access\.redhat\.com|mcr\.microsoft\.com|public\.ecr\.aws|registry\.npmjs\.org|proxy\.golang\.org)\b`)

// link matches the target of a Markdown link or image, inline or in a reference definition.
var link = regexp.MustCompile(`(?:\]\(|(?m:^\[[^\]]+\]: +))<?([^)>\s]+)`)

// checkLength finds files that are too long.
func checkLength(t *tree) (violations findings) {
	for _, f := range t.files {
		limit, ok := fileLimits[f.path]
		if !ok {
			limit = fileLimits[""]
		}
		exempt := slices.ContainsFunc(longFiles, func(e exemption) bool { return e.path == f.path })
		if n := strings.Count(f.text, "\n"); n > limit && !exempt {
			violations.add(f.path, 0, "%d lines, limit %d: split it by concern", n, limit)
		}
	}
	return violations
}

// checkPlaces finds machine-specific paths and registry hosts.
func checkPlaces(t *tree) (violations findings) {
	for _, f := range t.files {
		mayName := slices.ContainsFunc(namesRegistries, func(e exemption) bool { return e.path == f.path })
		line := 0
		for text := range strings.Lines(f.text) {
			line++
			if match := machinePath.FindStringSubmatch(text); match != nil {
				violations.add(f.path, line, "names %q, a path of one machine: take it as a setting or make a temporary folder", match[1])
			}
			if host := registryHost.FindString(text); host != "" && !mayName {
				violations.add(f.path, line, "names %q, the host of a registry: take it as a setting, or use example.com where it is an example", host)
			}
		}
	}
	return violations
}

// generatedPages is the folder that contains the pages that hack/docs generates from the code.
const generatedPages = "docs/reference/"

// checkLinks finds Markdown links to files that do not exist.
func checkLinks(t *tree) (violations findings) {
	exists := map[string]bool{".": true}
	for _, f := range t.files {
		exists[f.path] = true
	}
	for _, f := range t.files {
		if path.Ext(f.path) != ".md" {
			continue
		}
		for _, match := range link.FindAllStringSubmatchIndex(withoutCode(f.text), -1) {
			target := f.text[match[2]:match[3]]
			parsed, err := url.Parse(target)
			if err == nil && (parsed.Scheme != "" || parsed.Path == "") {
				continue // another site, or a heading of this page
			}
			line := 1 + strings.Count(f.text[:match[2]], "\n")
			if err != nil || path.IsAbs(parsed.Path) {
				violations.add(f.path, line, "link to %q: write the path relative to this file", target)
				continue
			}
			file := path.Join(f.folder(), parsed.Path)
			if strings.HasPrefix(file, generatedPages) {
				continue // `make docs` writes the page and checks the link
			}
			if !exists[file] && !t.folders[file] && !t.others[file] {
				violations.add(f.path, line, "link to %q: %s does not exist", target, file)
			}
		}
	}
	return violations
}

var code = regexp.MustCompile("(?ms:^```.*?^```)|`[^`\n]*`")

// withoutCode blanks code blocks and code spans, keeping every offset.
func withoutCode(markdown string) string {
	return code.ReplaceAllStringFunc(markdown, func(block string) string { return strings.Repeat(" ", len(block)) })
}
