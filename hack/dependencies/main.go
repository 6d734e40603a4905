// Command dependencies describes the modules that this repository requires, and the modules that
// its programs contain.
//
//	go run ./hack/dependencies                    writes docs/dependencies.md
//	go run ./hack/dependencies --sbom FILE ...    writes the bill of materials of the programs
//
// Run it in the repository's root folder. It fails if docs/dependencies.tsv has no row for a module
// that go.mod requires directly. It also fails if a linked module's license is not allowed, or if
// NOTICE lacks a notice that a linked module requires.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/slipway-platform/slipway/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	bill := flag.String("sbom", "", "write the bill of materials to this file")
	release := flag.String("version", version.Slipway(), "version of slipway that the bill of materials names")
	flag.Parse()
	if err := run(ctx, *bill, *release); err != nil {
		fmt.Fprintln(os.Stderr, "dependencies:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bill, release string) error {
	if bill != "" {
		return writeBill(ctx, ".", bill, release)
	}
	page, err := document(ctx, ".")
	if err != nil {
		return err
	}
	return section.Write(filepath.Join("docs", "dependencies.md"), page)
}

// document returns the tables for docs/dependencies.md. Its error lists all problems.
func document(ctx context.Context, root string) (string, error) {
	reasons, err := readReasons(filepath.Join(root, "docs", "dependencies.tsv"))
	if err != nil {
		return "", err
	}
	direct, err := directModules(ctx, root)
	if err != nil {
		return "", err
	}
	linked, err := linkedModules(ctx, root)
	if err != nil {
		return "", err
	}
	notice, err := os.ReadFile(filepath.Join(root, "NOTICE"))
	if err != nil {
		return "", err
	}
	packages, err := npmPackages(root)
	if err != nil {
		return "", err
	}
	err = errors.Join(checkReasons(reasons, direct), checkLicenses(linked), checkNotice(string(notice), linked), checkNPM(reasons, packages))
	return tables(reasons, direct, linked) + npmTables(reasons, packages), err
}
