package rsync

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// filter selects the files to copy. Its patterns are rsync's patterns without `**`. A pattern with
// a trailing slash matches only directories. A pattern with a leading slash matches the whole path,
// and any other pattern matches the end of a path. Includes take precedence over excludes.
type filter struct{ include, exclude []string }

func (f filter) validate() error {
	for _, pattern := range slices.Concat(f.include, f.exclude) {
		if _, err := path.Match(pattern, ""); err != nil || strings.Trim(pattern, "/") == "" {
			return fmt.Errorf("parse pattern %q: must be a name, which can contain *, ? and [...]", pattern)
		}
	}
	return nil
}

// keeps reports whether to copy a file or directory: neither it nor any of its parent directories
// is excluded. name is a relative path with slashes.
func (f filter) keeps(name string, directory bool) bool {
	parts := strings.Split(name, "/")
	for i := range parts {
		above := i < len(parts)-1
		if !f.chooses(strings.Join(parts[:i+1], "/"), above || directory) {
			return false
		}
	}
	return true
}

func (f filter) chooses(name string, directory bool) bool {
	match := func(pattern string) bool { return matches(pattern, name, directory) }
	return slices.ContainsFunc(f.include, match) || !slices.ContainsFunc(f.exclude, match)
}

func matches(pattern, name string, directory bool) bool {
	pattern, onlyDirectories := strings.CutSuffix(pattern, "/")
	if onlyDirectories && !directory {
		return false
	}
	pattern, ok := strings.CutPrefix(pattern, "/")
	parts := strings.Split(name, "/")
	if desired := strings.Count(pattern, "/") + 1; !ok && len(parts) > desired {
		parts = parts[len(parts)-desired:]
	}
	matched, err := path.Match(pattern, strings.Join(parts, "/"))
	return err == nil && matched
}
