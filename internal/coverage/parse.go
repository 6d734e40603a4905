package coverage

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	header    = "document\tsection\trow\tstate\tproof\tnote"
	noteLimit = 100 // in characters
)

// Load reads the file at path. The returned error joins one error for each invalid line.
func Load(path string) ([]Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read coverage: %w", err)
	}
	defer f.Close()
	return Parse(path, f)
}

// Parse parses a coverage file. name is the file's name in errors. Parse reports every invalid line
// as `<name>:<line>: <problem>`. It returns the valid rows together with the joined errors.
func Parse(name string, r io.Reader) ([]Row, error) {
	var (
		rows     []Row
		problems []error
		first    = map[string]int{} // line number by document and row
		line     int
	)
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s:%d: %w", name, line, fmt.Errorf(format, args...)))
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line++
		if line == 1 {
			if lines.Text() != header {
				report("header %q: want %q", lines.Text(), header)
			}
			continue
		}
		row, err := parseRow(lines.Text())
		if err != nil {
			report("%w", err)
			continue
		}
		row.Line = line
		key := row.Document + "\t" + row.Name
		if before, ok := first[key]; ok {
			report("row %q of document %q is already in line %d: rename one of them",
				row.Name, row.Document, before)
			continue
		}
		first[key] = line
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		problems = append(problems, fmt.Errorf("read coverage %q: %w", name, err))
	}
	if line == 0 {
		problems = append(problems, fmt.Errorf("%s: file is empty: want the header %q", name, header))
	}
	return rows, errors.Join(problems...)
}

// parseRow reads one line below the header.
func parseRow(line string) (Row, error) {
	fields := strings.Split(line, "\t")
	if want := strings.Count(header, "\t") + 1; len(fields) != want {
		return Row{}, fmt.Errorf("%d fields separated by tabs: want %d", len(fields), want)
	}
	for i, field := range fields {
		if field != strings.TrimSpace(field) {
			return Row{}, fmt.Errorf("field %d %q begins or ends with white space", i+1, field)
		}
	}
	row := Row{Document: fields[0], Section: fields[1], Name: fields[2], State: State(fields[3]), Note: fields[5]}
	switch {
	case row.Document == "" || row.Section == "" || row.Name == "":
		return Row{}, errors.New("document, section and row must not be empty")
	case strings.ContainsAny(row.Name, " \u00a0"):
		return Row{}, fmt.Errorf("row %q contains white space", row.Name)
	case !slices.Contains(States(), row.State):
		return Row{}, fmt.Errorf("state %q is unknown: want one of %q", row.State, States())
	case row.Note == "":
		return Row{}, fmt.Errorf("row %q has no note: state what it requires", row.Name)
	case utf8.RuneCountInString(row.Note) > noteLimit:
		return Row{}, fmt.Errorf("note of row %q has %d characters: shorten it to %d",
			row.Name, utf8.RuneCountInString(row.Note), noteLimit)
	case row.State.needsProof() && fields[4] == "":
		return Row{}, fmt.Errorf("row %q is %q without a proof: name a test or make it %q",
			row.Name, row.State, Open)
	case !row.State.needsProof() && fields[4] != "":
		return Row{}, fmt.Errorf("row %q is %q with a proof: remove the proof or change the state",
			row.Name, row.State)
	}
	if fields[4] == "" {
		return row, nil
	}
	for _, text := range strings.Split(fields[4], ",") {
		proof, err := parseProof(text)
		if err != nil {
			return Row{}, fmt.Errorf("row %q: %w", row.Name, err)
		}
		row.Proofs = append(row.Proofs, proof)
	}
	return row, nil
}

// parseProof parses `<package>.<Test>` or `<package>.<Test>/<subtest>`. A subtest can contain dots
// and slashes, so the package ends at the first ".Test".
func parseProof(text string) (Proof, error) {
	folder, rest, ok := strings.Cut(text, ".Test")
	if !ok || folder == "" || folder != strings.TrimSpace(folder) || strings.HasPrefix(folder, "/") {
		return Proof{}, fmt.Errorf(
			"proof %q: want <package>.<Test> such as test/scenario/boot.TestBoot", text)
	}
	test, subtest, _ := strings.Cut("Test"+rest, "/")
	return Proof{Package: folder, Test: test, Subtest: subtest}, nil
}
