// Package snapshot saves and checks copies of etcd's database. A copy ends with the SHA-256 hash of
// its content.
package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/diskspace"
)

// Source writes a copy of the database, followed by its SHA-256 hash.
type Source func(ctx context.Context, out io.Writer) error

// partialSuffix is the file name suffix of an incomplete copy.
const partialSuffix = ".partial"

// Save writes a copy under a temporary name, checks the copy and renames it. It returns the copy's
// size in bytes. The file must not exist.
func Save(ctx context.Context, source Source, path string) (size int64, err error) {
	if _, err := os.Lstat(path); err == nil {
		return 0, fmt.Errorf("save snapshot: %q already exists", path)
	}
	temporary := path + partialSuffix
	defer os.Remove(temporary)
	if err := Copy(ctx, source, temporary); err != nil {
		return 0, err
	}
	if size, err = Check(temporary); err != nil {
		return 0, fmt.Errorf("check snapshot %q: %w", temporary, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return 0, fmt.Errorf("save snapshot: %w", err)
	}
	return size, atomicfile.SyncFolder(filepath.Dir(path))
}

// Copy writes a copy to a file with mode 0600 and syncs the file.
func Copy(ctx context.Context, source Source, path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	defer file.Close()
	if err := source(ctx, &limitedWriter{file: file}); err != nil {
		return err
	}
	return file.Sync()
}

// reserve is the disk space that a copy must leave free. The reserve is necessary because etcd
// might be on the same disk, and etcd stops when the disk is full.
var reserve = diskspace.Reserve{Bytes: 256 << 20, Share: 0.01}

// reserveInterval is the number of bytes that are written between checks of the free space.
const reserveInterval = 16 << 20

// limitedWriter writes to a file until only the reserve remains free on the file's disk.
type limitedWriter struct {
	file  *os.File
	until int64 // number of bytes until the next check
}

func (w *limitedWriter) Write(data []byte) (int, error) {
	if w.until <= 0 {
		if err := reserve.Check(filepath.Dir(w.file.Name())); err != nil {
			return 0, fmt.Errorf("save snapshot: the disk of %q is full: %w", filepath.Dir(w.file.Name()), err)
		}
		w.until = reserveInterval
	}
	n, err := w.file.Write(data)
	w.until -= int64(n)
	return n, err
}

// errIncomplete is the error for a file that does not end with the hash of its content.
var errIncomplete = errors.New("the file is incomplete, or was changed; save another snapshot")

// Check verifies a copy against the SHA-256 hash that etcd appends to it. It returns the copy's
// size in bytes.
func Check(path string) (size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	// An etcd database consists of pages of at least 512 bytes, so the size of the database is a
	// multiple of 512.
	if info.Size()%512 != sha256.Size {
		return 0, errIncomplete
	}
	hash := sha256.New()
	if _, err := io.CopyN(hash, file, info.Size()-sha256.Size); err != nil {
		return 0, err
	}
	sum, err := io.ReadAll(file)
	if err != nil {
		return 0, err
	}
	if string(sum) != string(hash.Sum(nil)) {
		return 0, errIncomplete
	}
	return info.Size(), nil
}
