package payload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// removeStale removes from dir the remains of an interrupted Unpack and unused versions other than
// current. A running shim keeps its version in use, because its containers need the runc of that
// version until they end. removeStale ignores names that are not versions.
func removeStale(dir, current string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("remove old programs: %w", err)
	}
	version := regexp.MustCompile(`^[0-9a-f]{16}$`)
	var errs []error
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), partial):
			errs = append(errs, os.RemoveAll(path))
		case entry.IsDir() && version.MatchString(entry.Name()) && entry.Name() != current && !inUse(path):
			errs = append(errs, os.RemoveAll(path))
		}
	}
	return errors.Join(errs...)
}

// inUse reports whether a process runs a program in dir. It ignores processes that end during the
// check. If it cannot determine this, it returns true.
func inUse(dir string) bool {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return true
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true
	}
	for _, link := range links {
		if exe, err := os.Readlink(link); err == nil && strings.HasPrefix(exe, resolved+"/") {
			return true
		}
	}
	return false
}
