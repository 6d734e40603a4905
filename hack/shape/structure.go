package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// construct is a kind of code that is allowed only in some places.
type construct struct {
	title   string
	pattern *regexp.Regexp
	// outside contains the path prefixes of files that are not counted. The code is allowed in
	// these files, or they belong to clients, which are separate processes.
	outside []string
}

// constructs returns the constructs that STYLE.md and ARCHITECTURE.md allow only in certain places.
func constructs() []construct {
	of := func(title, pattern string, outside ...string) construct {
		return construct{title, regexp.MustCompile(pattern), outside}
	}
	return []construct{
		of("Work queues outside controller", `\bworkqueue\.New`, "controller/"),
		of("Informer factories outside controller/deps.go", `\bNew(?:Filtered)?SharedInformerFactory`, "controller/deps.go", "cli/"),
		of("Clients from a kubeconfig outside cli", `\bclientcmd\.(?:BuildConfig|RESTConfig)`, "cli/", "examples/"),
		of("Clients from a configuration outside cli and controller/deps.go", `\.NewForConfig\(`, "controller/deps.go", "cli/", "examples/"),
		of("Readers of tar archives", `\btar\.NewReader\(`),
	}
}

// writeStructure prints the places that contain a construct that is not allowed there.
func writeStructure(w io.Writer, sources []source) {
	for _, c := range constructs() {
		var places []string
		for _, s := range sources {
			if !s.isTest() && !strings.HasPrefix(s.path, "hack/") && !hasAnyPrefix(s.path, c.outside) {
				places = append(places, c.places(s)...)
			}
		}
		fmt.Fprintf(w, "\n%s: %d\n", c.title, len(places))
		for _, place := range places {
			fmt.Fprintf(w, "          %s\n", place)
		}
	}
}

func (c construct) places(s source) (places []string) {
	for i, line := range s.lines {
		if c.pattern.MatchString(line) && !strings.HasPrefix(strings.TrimSpace(line), "//") {
			places = append(places, fmt.Sprintf("%s:%d", s.path, i+1))
		}
	}
	return places
}

func hasAnyPrefix(text string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

var (
	// webLink matches a link, but not a picture.
	webLink = regexp.MustCompile(`(?:^|[^!])\[[^\]]*\]\([^)]+\)`)
	// cell matches a cell of a Markdown table.
	cell = regexp.MustCompile(`[^|]+`)
)

// writeDocuments prints figures about the README, and the largest table cell in all documents.
func writeDocuments(w io.Writer, documents map[string]string) {
	readme := documents["README.md"]
	rows := 0
	for line := range strings.Lines(readme) {
		if strings.HasPrefix(line, "|") {
			rows++
		}
	}
	fmt.Fprintf(w, "\nREADME.md: %d links (aim: 6), %d rows of tables\n", len(webLink.FindAllString(readme, -1)), rows)
	words, place := 0, ""
	for name, text := range documents {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(strings.TrimSpace(line), "|") {
				continue
			}
			for _, text := range cell.FindAllString(line, -1) {
				if count := len(strings.Fields(text)); count > words || count == words && name < place {
					words, place = count, name
				}
			}
		}
	}
	fmt.Fprintf(w, "\nWords in the largest cell of a table: %d, %s\n", words, place)
}

// writeTimes prints the duration of the last `make check` and of each part of the last `make test`,
// if they were recorded. `go run ./hack/gotest -report bin/times` prints them by package.
func writeTimes(w io.Writer, root string) {
	times := filepath.Join(root, "bin", "times")
	if seconds, err := os.ReadFile(filepath.Join(times, "check")); err == nil {
		fmt.Fprintf(w, "\nSeconds of the last make check: %s (aim: 180)\n", strings.TrimSpace(string(seconds)))
	}
	for _, part := range []string{"unit", "scenario", "s3"} {
		content, err := os.ReadFile(filepath.Join(times, part+".json"))
		if err != nil {
			continue
		}
		var record struct{ Seconds float64 }
		if err := json.Unmarshal(content, &record); err == nil {
			fmt.Fprintf(w, "Seconds of the last make %s: %.0f\n", part, record.Seconds)
		}
	}
}
