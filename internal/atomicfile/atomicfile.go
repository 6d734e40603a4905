// Package atomicfile replaces files so that a reader, and a start after kill -9 or a loss of power, finds the
// old or the new content, never a part of it.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the file at path, or creates it, with exactly the given mode whatever the umask. When it
// returns nil, the file is on the disk under its name.
//
// The content passes through ".<name>.new" in the same folder. A process that is killed leaves that file, and
// the next Write takes it over; so two Writes to one path must not overlap. The folder must exist.
func Write(path string, content []byte, mode fs.FileMode) error {
	folder, name := filepath.Split(filepath.Clean(path))
	temporary := filepath.Join(folder, "."+name+".new")
	err := writeSynced(temporary, content, mode)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		os.Remove(temporary)
		return fmt.Errorf("write %q: %w", path, err)
	}
	return SyncFolder(filepath.Clean(folder))
}

func writeSynced(path string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	err = f.Chmod(mode) // first, so that no one reads a secret through the mode of a file that was left behind
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// SyncFolder puts the names in a folder on the disk, so that renames and removals there last.
func SyncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("sync folder %q: %w", folder, err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync folder %q: %w", folder, err)
	}
	return nil
}
