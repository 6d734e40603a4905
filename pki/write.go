package pki

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

const (
	secret = 0o600
	public = 0o644
)

// writeFile replaces a file so that readers find the old or the new content, also after a loss of
// power. The caller holds the lock.
func writeFile(path string, content []byte, mode os.FileMode) error {
	folder, name := filepath.Split(path)
	temporary := filepath.Join(folder, "."+name+".new")
	if err := writeSynced(temporary, content, mode); err != nil {
		os.Remove(temporary)
		return fmt.Errorf("write %q: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		os.Remove(temporary)
		return fmt.Errorf("write %q: %w", path, err)
	}
	return syncFolder(folder)
}

// writeIfDifferent writes a file unless it holds content already.
func writeIfDifferent(path string, content []byte, mode os.FileMode) (written bool, err error) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return false, nil
	}
	return true, writeFile(path, content, mode)
}

func writeSynced(path string, content []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode) // whatever the umask, and a file that an earlier attempt left
	}
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

// removeFile removes a file, if it exists, so that it stays removed.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove %q: %w", path, err)
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes renames and removals in folder last.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("open folder %q: %w", folder, err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync folder %q: %w", folder, err)
	}
	return nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
