// Command shape prints the repository's shape. For every package, it prints the number of lines of
// code and tests, the purpose, and the repository's packages that it imports. It then prints
// figures for the whole repository: sizes of files and functions, tests by folder, repetitions, and
// code that is allowed only in some places. Further figures describe oc verbs without phases, names
// that the glossary advises against, the documents, and the times of the last `make check` and
// `make test`. It reports no errors; the rules are in internal/repocheck.
//
//	go run ./hack/shape
package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints the report for the repository whose root folder is root.
func run(root string) error {
	packages, err := load(root)
	if err != nil {
		return err
	}
	sources, err := loadSources(root)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	report(out, packages)
	writeFigures(out, sources)
	writeStructure(out, sources)
	documents, err := loadDocuments(root)
	if err != nil {
		return err
	}
	writeNames(out, sources, documents[glossary])
	writeDocuments(out, documents)
	writeTimes(out, root)
	return out.Flush()
}
