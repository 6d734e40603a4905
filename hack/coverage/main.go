// Command coverage reports the number of rows in docs/coverage.tsv in each state, by section and by
// document.
//
//	go run ./hack/coverage             prints the totals
//	go run ./hack/coverage --markdown  writes the totals to docs/coverage.md
//
// Run it in the repository's root folder. It fails if docs/coverage.tsv is invalid or if a proof
// does not exist.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-platform/slipway/internal/coverage"
)

func main() {
	markdown := flag.Bool("markdown", false, "write the totals to docs/coverage.md")
	root := flag.String("root", ".", "root folder of the repository")
	flag.Parse()
	if err := run(*root, *markdown); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root string, markdown bool) error {
	totals, err := load(root)
	if err != nil {
		return err
	}
	if !markdown {
		return writeText(os.Stdout, totals)
	}
	return section.Write(filepath.Join(root, "docs", "coverage.md"), tables(totals))
}

// load reads docs/coverage.tsv below root, checks the proofs, and returns the totals.
func load(root string) ([]coverage.DocumentTotal, error) {
	path := filepath.Join(root, "docs", "coverage.tsv")
	rows, err := coverage.Load(path)
	if err != nil {
		return nil, err
	}
	if err := coverage.CheckProofs(root, path, rows); err != nil {
		return nil, err
	}
	return coverage.Totals(rows), nil
}
