package payload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// removeStale removes the remains of an interrupted Unpack from dir, and all unused versions except
// current. A running shim keeps its version in use, because its containers need that version's runc
// until they exit. removeStale ignores names that are not versions.
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

// inUse reports whether a process is running a program in dir. It ignores processes that exit
// during the check. It returns true if it cannot determine the answer.
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
