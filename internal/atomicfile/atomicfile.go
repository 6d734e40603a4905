// Package atomicfile replaces files atomically. A reader, or a process that starts after kill -9 or
// a power failure, sees either the old or the new content, never a mixture.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write creates or replaces the file at path. The file has exactly the given mode, regardless of
// the umask. When Write returns nil, the file and its directory entry are on disk.
//
// Write first writes ".<name>.new" in the same folder. If the process is killed, that file remains,
// and the next Write overwrites it. Therefore, concurrent Writes to the same path are not allowed.
// The folder must exist.
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
	// Set the mode first, because the file of an earlier, killed Write might have a mode that lets
	// other users read a secret.
	err = f.Chmod(mode)
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// SyncFolder flushes a folder's entries to disk, so that renames and removals are durable.
func SyncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("sync directory %q: %w", folder, err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync directory %q: %w", folder, err)
	}
	return nil
}
