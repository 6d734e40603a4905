package haproxy

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// writeFiles writes a configuration's files below a directory. It skips unchanged files.
func writeFiles(dir string, before, files map[string][]byte) error {
	for name, content := range files {
		if was, same := before[name]; same && bytes.Equal(was, content) {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("write file: %w", err)
		}
	}
	return nil
}

// removeFiles removes files of the previous configuration that the current configuration does not
// need.
func removeFiles(dir string, before, files map[string][]byte) {
	for name := range before {
		if _, ok := files[name]; ok {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			slog.Warn("cannot remove a deleted route's file", "error", err)
		}
	}
}

// Between reloads, syncFiles updates the route files on disk to match the served configuration, so
// that no unused private key remains on the disk.
func (r *running) syncFiles(dir string) error {
	config := r.served.config
	if config.whole != "" || sameMap(r.remaining, config.Files) {
		return nil
	}
	if err := writeFiles(dir, r.files, config.Files); err != nil {
		return err
	}
	maps.Copy(r.files, config.Files)
	for name := range r.files {
		_, ok := config.Files[name]
		if ok || !strings.HasPrefix(name, certificatesDir) && !strings.HasPrefix(name, authoritiesDir) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove a deleted route's file: %w", err)
		}
		delete(r.files, name)
	}
	r.remaining = config.Files
	return nil
}
