package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// inputsFile is the name of the file in dist that contains a hash of the last build's sources.
const inputsFile = "inputs"

// sources returns a hash of all source files. It ignores node_modules, because the lock file
// identifies the packages.
func (b *build) sources() (string, error) {
	sum := sha256.New()
	generated := []string{filepath.Join(b.web, "node_modules"), b.output}
	err := filepath.WalkDir(b.web, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(generated, path):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		hash, err := digest(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(b.web, path)
		fmt.Fprintf(sum, "%q %s\n", relative, hash)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// digest returns the hash of a file's content.
func digest(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// current reports whether a file's content equals text.
func current(path, text string) bool {
	content, err := os.ReadFile(path)
	return err == nil && string(content) == text
}
