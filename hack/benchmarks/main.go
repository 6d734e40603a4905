// Command benchmarks collects the tables in the benchmark documents into docs/benchmark.json, so
// that other programs can read them. `make bench` runs it in the repository's root folder after the
// measurements:
//
//	go run ./hack/benchmarks
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// pages lists the documents that contain measurements. file is the JSON file that collect's result
// is written to. All of these files are in docs.
var pages = []string{"benchmark.md", "benchmark-hosts.md", "benchmark-catalog.md"}

const file = "benchmark.json"

// measurement is one row of a table in a document.
type measurement struct {
	Page string `json:"page"` // file name of the document
	Part string `json:"part"` // name of the document's generated section
	Name string `json:"name"` // first cell of the row
	// Values contains the row's other non-empty cells, including their units, keyed by column
	// heading. The key of a column without a heading is "outcome".
	Values map[string]string `json:"values"`
}

func main() {
	content, err := collect("docs")
	if err == nil {
		err = os.WriteFile(filepath.Join("docs", file), content, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

// collect returns the JSON file for the documents in a directory. Each measurement has its own
// line, so that a diff of two versions shows the measurements that changed.
func collect(dir string) ([]byte, error) {
	var lines [][]byte
	for _, page := range pages {
		document, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil {
			return nil, fmt.Errorf("read document: %w", err)
		}
		measurements := parse(page, string(document))
		if len(measurements) == 0 {
			return nil, fmt.Errorf("read %s: it has no generated table", page)
		}
		for _, m := range measurements {
			var line bytes.Buffer
			encoder := json.NewEncoder(&line)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(m); err != nil {
				return nil, err
			}
			lines = append(lines, bytes.TrimSpace(line.Bytes()))
		}
	}
	return fmt.Appendf(nil, "[\n%s\n]\n", bytes.Join(lines, []byte(",\n"))), nil
}

var (
	beginMarker = regexp.MustCompile(`^<!-- ([a-z-]+):begin -->$`)
	endMarker   = regexp.MustCompile(`^<!-- [a-z-]+:end -->$`)
	ruler       = regexp.MustCompile(`^[|: -]+$`)
)

// parse returns the rows of the tables in a document's generated sections.
func parse(page, document string) (all []measurement) {
	part := ""
	var heading []string
	for line := range strings.Lines(document) {
		line = strings.TrimSpace(line)
		begin := beginMarker.FindStringSubmatch(line)
		switch {
		case begin != nil:
			part = begin[1]
		case endMarker.MatchString(line):
			part = ""
		case part == "" || !strings.HasPrefix(line, "|"):
			heading = nil
		case heading == nil:
			heading = cells(line)
		case !ruler.MatchString(line):
			all = append(all, newMeasurement(page, part, heading, cells(line)))
		}
	}
	return all
}

func newMeasurement(page, part string, heading, row []string) measurement {
	m := measurement{Page: page, Part: part, Name: row[0], Values: map[string]string{}}
	for i := 1; i < min(len(heading), len(row)); i++ {
		name := heading[i]
		if name == "" {
			name = "outcome"
		}
		if row[i] != "" {
			m.Values[name] = row[i]
		}
	}
	return m
}

// cells returns the trimmed cells of a table row.
func cells(line string) []string {
	columns := strings.Split(strings.Trim(line, "|"), "|")
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	return columns
}
