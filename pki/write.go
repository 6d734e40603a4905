package pki

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

const (
	secret = 0o600
	public = 0o644
)

// writeIfDifferent writes a file unless the file already has the same content.
func writeIfDifferent(path string, content []byte, mode os.FileMode) (changed bool, err error) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return false, nil
	}
	return true, atomicfile.Write(path, content, mode)
}

// removeFile removes a file, if it exists, and syncs the directory.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove %q: %w", path, err)
	}
	return atomicfile.SyncFolder(filepath.Dir(path))
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
