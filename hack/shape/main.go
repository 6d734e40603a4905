// Command shape prints the shape of the repository: for every package its lines of code and of
// tests, its purpose, and which of our packages it imports. Then it prints figures of the whole:
// sizes of files and functions, tests by folder, repetitions, code that belongs to few places,
// verbs of oc without phases, names that the glossary avoids, documents, and the times of the last
// `make check` and `make test`. It does not judge; the rules are in internal/repocheck.
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

// run prints the packages below the folder root, sorted by path.
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
