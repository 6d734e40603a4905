package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// Limits of the report.
const (
	maxRows        = 5
	screenLines    = 60
	maxFunction    = 80
	repeatedLines  = 6   // minimum number of equal lines in a repetition
	maxRepetitions = 100 // maximum number of places of a reported run
)

// figure is a size with a name.
type figure struct {
	name string
	size int
}

// writeFigures prints the sizes of files, functions and the composition root, tests by folder, wide
// comments, repetitions, import aliases, and oc verbs without phases.
func writeFigures(w io.Writer, sources []source) {
	writeSizes(w, sources)
	writeRoot(w, sources)
	writeTests(w, sources)
	writeWidth(w, sources)
	runs, places := repetitions(sources)
	fmt.Fprintf(w, "\nRepetitions: %d runs of %d or more equal lines of code, outside tests\n", len(runs), repeatedLines)
	for _, run := range runs[:min(len(runs), maxRows)] {
		fmt.Fprintf(w, "%8d  lines  %s\n", run.size, places[run.name])
	}
	writeAliases(w, sources)
	writePhases(w, sources)
}

func writeSizes(w io.Writer, sources []source) {
	var files, functions []figure
	screens, long := 0, 0
	for _, s := range sources {
		if s.isTest() {
			continue
		}
		files = append(files, figure{s.path, len(s.lines) - 1})
		s.functions(func(name string, lines int) {
			functions = append(functions, figure{s.path + " " + name, lines})
			if lines > screenLines {
				screens++
			}
			if lines > maxFunction {
				long++
			}
		})
	}
	largestFirst(files)
	largestFirst(functions)
	if len(files) == 0 || len(functions) == 0 {
		return
	}
	fmt.Fprintf(w, "\nFiles without tests: %d, median %d lines\n", len(files), files[len(files)/2].size)
	writeRows(w, files)
	fmt.Fprintf(w, "\nFunctions without tests: %d, median %d lines, %d of more than %d, %d of more than %d\n",
		len(functions), functions[len(functions)/2].size, screens, screenLines, long, maxFunction)
	writeRows(w, functions)
}

// writeTests prints the number of unit test lines per line of code, by folder. It includes
// scenarios only in the total, because they test all folders.
func writeTests(w io.Writer, sources []source) {
	code, test := map[string]int{}, map[string]int{}
	scenarios := 0
	for _, s := range sources {
		switch {
		case strings.HasPrefix(s.path, "test/"):
			scenarios += s.code
		case s.isTest():
			test[s.folder()] += s.code
		default:
			code[s.folder()] += s.code
		}
	}
	fmt.Fprintf(w, "\nLines of unit tests for each line of code (aim: 1.0 where the code has behavior)\n")
	for _, folder := range slices.Sorted(maps.Keys(code)) {
		fmt.Fprintf(w, "%8.2f  %s (%d lines)\n", ratio(test[folder], code[folder]), folder, code[folder])
	}
	units, all := sum(test), sum(code)
	fmt.Fprintf(w, "%8.2f  all\n%8.2f  all, with the %d lines of test/\n", ratio(units, all), ratio(units+scenarios, all), scenarios)
}

// writeRoot prints the size of each folder of the composition root, which contains only wiring.
func writeRoot(w io.Writer, sources []source) {
	const root, aim = "platform", 1500
	byFolder := map[string]int{}
	for _, s := range sources {
		if folder := path.Dir(s.path); s.folder() == root && !s.isTest() {
			byFolder[folder] += s.code
		}
	}
	var rows []figure
	for folder, code := range byFolder {
		rows = append(rows, figure{folder, code})
	}
	largestFirst(rows)
	fmt.Fprintf(w, "\nLines of code in the folders of the composition root (aim: each at most %d)\n", aim)
	writeRows(w, rows)
}

func writeWidth(w io.Writer, sources []source) {
	byFolder := map[string]int{}
	for _, s := range sources {
		if count := s.wideComments(); count > 0 {
			byFolder[s.folder()] += count
		}
	}
	var rows []figure
	for folder, count := range byFolder {
		rows = append(rows, figure{folder, count})
	}
	largestFirst(rows)
	fmt.Fprintf(w, "\nLines of comments wider than 100 columns, preformatted ones included: %d\n", sum(byFolder))
	writeRows(w, rows)
}

func writeAliases(w io.Writer, sources []source) {
	aliases := map[string]map[string]int{}
	for _, s := range sources {
		s.aliases(func(importPath, alias string) {
			if aliases[importPath] == nil {
				aliases[importPath] = map[string]int{}
			}
			aliases[importPath][alias]++
		})
	}
	maps.DeleteFunc(aliases, func(_ string, names map[string]int) bool { return len(names) < 2 })
	fmt.Fprintf(w, "\nPackages that are imported under several aliases: %d\n", len(aliases))
	for _, importPath := range slices.Sorted(maps.Keys(aliases)) {
		fmt.Fprintf(w, "          %s: %s\n", importPath, strings.Join(slices.Sorted(maps.Keys(aliases[importPath])), ", "))
	}
}

// repetitions returns runs of equal code lines that occur in several places, longest first, and the
// places of each run. It ignores tests, imports, and lines without letters.
func repetitions(sources []source) (runs []figure, places map[string]string) {
	type position struct{ file, line int }
	first := map[string]position{}
	common := map[string]int{}
	sizes, places := map[string]int{}, map[string]string{}
	for i, s := range sources {
		if s.isTest() {
			continue
		}
		lines, numbers := codeLines(s)
		var previous string // the run that contains the preceding window, or ""
		for j := 0; j+repeatedLines <= len(lines); j++ {
			window := strings.Join(lines[j:j+repeatedLines], "\n")
			at, repeated := first[window]
			if !repeated {
				first[window] = position{i, numbers[j]}
			}
			if common[window]++; !repeated || common[window] > maxRepetitions || at.file == i && numbers[j]-at.line < repeatedLines {
				previous = ""
				continue
			}
			if previous == "" {
				previous = fmt.Sprintf("%s:%d", s.path, numbers[j])
				sizes[previous] = repeatedLines - 1
				places[previous] = fmt.Sprintf("%s:%d, %s", sources[at.file].path, at.line, previous)
			}
			sizes[previous]++
		}
	}
	for name, size := range sizes {
		runs = append(runs, figure{name, size})
	}
	largestFirst(runs)
	return runs, places
}

// codeLines returns the lines of code after the imports, trimmed, with their line numbers. It omits
// lines without letters.
func codeLines(s source) (lines []string, numbers []int) {
	start := 0
	for _, spec := range s.syntax.Imports {
		start = max(start, s.tokens.Position(spec.End()).Line)
	}
	for i, line := range s.lines[start:] {
		line = strings.TrimSpace(line)
		if strings.ContainsAny(line, "abcdefghijklmnopqrstuvwxyz") && !strings.HasPrefix(line, "//") {
			lines, numbers = append(lines, line), append(numbers, start+i+1)
		}
	}
	return lines, numbers
}

func largestFirst(figures []figure) {
	slices.SortFunc(figures, func(a, b figure) int {
		return cmp.Or(cmp.Compare(b.size, a.size), strings.Compare(a.name, b.name))
	})
}

func writeRows(w io.Writer, figures []figure) {
	for _, f := range figures[:min(len(figures), maxRows)] {
		fmt.Fprintf(w, "%8d  %s\n", f.size, f.name)
	}
}

func ratio(a, b int) float64 { return float64(a) / float64(max(b, 1)) }

func sum(counts map[string]int) (total int) {
	for _, count := range counts {
		total += count
	}
	return total
}
