package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// repository is the URL prefix for files that are not part of the site.
const repository = "https://github.com/slipway-platform/slipway/tree/main/"

// places maps the repository's files and folders to their paths in the site's source.
func places() map[string]string {
	return map[string]string{
		"docs":            ".",
		"ARCHITECTURE.md": "project/architecture.md",
		"CONTRIBUTING.md": "project/contributing.md",
		"SCOPE.md":        "project/scope.md",
		"SECURITY.md":     "project/security.md",
		"STYLE.md":        "project/style.md",
		"examples":        "examples",
	}
}

// link matches the target of a Markdown link or image.
var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)

// stage returns the repository's pages and images, keyed by their paths in the site's source. It
// changes links between pages to these paths, and links to other files in the repository to URLs.
func stage(root string) (pages, error) {
	files, err := find(root)
	if err != nil {
		return nil, err
	}
	all := pages{}
	var problems []error
	for file, place := range files {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, fmt.Errorf("read page: %w", err)
		}
		text := string(data)
		if path.Ext(file) == ".md" {
			text = link.ReplaceAllStringFunc(text, func(match string) string {
				parts := link.FindStringSubmatch(match)
				target, err := resolve(root, files, file, parts[1])
				if err != nil {
					problems = append(problems, err)
				}
				return "](" + target + parts[2] + ")"
			})
		}
		all[place] = text
	}
	return all, errors.Join(problems...)
}

// find maps the paths of pages and images in the repository to their paths in the site's source.
func find(root string) (map[string]string, error) {
	files := map[string]string{}
	for source, place := range places() {
		err := filepath.WalkDir(filepath.Join(root, source), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			file, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			if extension := path.Ext(file); extension == ".md" || extension == ".svg" || extension == ".png" {
				files[file] = path.Join(place, strings.TrimPrefix(strings.TrimPrefix(file, source), "/"))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("find pages: %w", err)
		}
	}
	for file, place := range files {
		if path.Base(place) == "README.md" {
			files[file] = path.Join(path.Dir(place), "index.md")
		}
	}
	return files, nil
}

// resolve returns a link's new target. It returns an error if the target does not exist.
func resolve(root string, files map[string]string, page, target string) (string, error) {
	if strings.Contains(target, ":") { // the link leads to another site
		return target, nil
	}
	file := path.Join(path.Dir(page), target)
	if place, ok := files[file]; ok {
		return filepath.Rel(path.Dir(files[page]), place)
	}
	if place, ok := files[path.Join(file, "README.md")]; ok {
		return filepath.Rel(path.Dir(files[page]), place)
	}
	if generated := "docs/reference/"; strings.HasPrefix(file, generated) {
		return target, nil // MkDocs checks the link
	}
	if _, err := os.Stat(filepath.Join(root, file)); err != nil {
		return target, fmt.Errorf("%s: the link to %s has no target", page, target)
	}
	return repository + file, nil
}
