// Command docs prepares the documentation site. It copies every page to one folder, with links that
// work there. From the code, it generates the reference pages: every command with its flags, every
// configuration key, every API type with its fields, and every metric. MkDocs builds the site from
// that folder.
//
//	go run ./hack/docs -out bin/docs
//
// `make docs` runs this command and MkDocs. A broken link is an error.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", "bin/docs", "directory for the pages; its previous content is removed")
	flag.Parse()
	if err := write(".", *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pages maps each page's path in the site's source to the page's text.
type pages map[string]string

// write writes all pages to out. root is the repository's root folder.
func write(root, out string) error {
	all, err := stage(root)
	if err != nil {
		return err
	}
	reference := pages{}
	for _, generate := range []func(pages) error{commandPages, configurationPages, apiPages, metricPage} {
		if err := generate(reference); err != nil {
			return err
		}
	}
	for name, text := range reference {
		all[filepath.Join("reference", name)] = text
	}
	if err := os.RemoveAll(out); err != nil {
		return fmt.Errorf("remove previous pages: %w", err)
	}
	for name, text := range all {
		path := filepath.Join(out, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("create page directory: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write page: %w", err)
		}
	}
	return nil
}
