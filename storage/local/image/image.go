// Package image creates, copies and measures volume images. Each image is a sparse file of the same
// size as its volume.
package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// chunkBytes is the number of bytes that are copied between two checks of the context.
const chunkBytes = 16 << 20

// Create creates and syncs a sparse file with the given size, in bytes. It replaces an existing
// file.
func Create(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("create image: %w", err)
	}
	if err := errors.Join(f.Truncate(size), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("create image: %w", err)
	}
	return nil
}

// Grow expands the file to at least size bytes and syncs it. It never shrinks the file.
func Grow(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("grow image: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("grow image: %w", err)
	}
	if info.Size() < size {
		if err := f.Truncate(size); err != nil {
			return fmt.Errorf("grow image: %w", err)
		}
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("grow image: %w", err)
	}
	return nil
}

// Allocate allocates disk space for the file's complete size. It preserves the content.
func Allocate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("allocate image: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() > 0 {
		err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, info.Size())
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("allocate image %q: %w", path, err)
	}
	return nil
}

// Copy copies the source file to path and syncs the copy. It replaces an existing file. If the file
// system can share blocks between files (xfs, btrfs), the copy is immediate and shared is true.
// Otherwise, Copy copies the allocated blocks.
func Copy(ctx context.Context, path, source string) (shared bool, err error) {
	src, err := os.Open(source)
	if err != nil {
		return false, fmt.Errorf("copy image: %w", err)
	}
	defer src.Close()
	dst, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return false, fmt.Errorf("copy image: %w", err)
	}
	defer dst.Close()
	shared = unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) == nil
	if !shared {
		err = copyData(ctx, dst, src)
	}
	if err == nil {
		err = dst.Sync()
	}
	if err != nil {
		return false, fmt.Errorf("copy image %q: %w", source, err)
	}
	return shared, nil
}

// SharesBlocks reports whether files in a directory can share blocks.
func SharesBlocks(dir string) (bool, error) {
	src, err := os.CreateTemp(dir, ".share-")
	if err != nil {
		return false, fmt.Errorf("test block sharing: %w", err)
	}
	defer os.Remove(src.Name())
	defer src.Close()
	dst, err := os.CreateTemp(dir, ".share-")
	if err != nil {
		return false, fmt.Errorf("test block sharing: %w", err)
	}
	defer os.Remove(dst.Name())
	defer dst.Close()
	return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) == nil, nil
}

// copyData copies a file's allocated blocks to an empty file.
func copyData(ctx context.Context, dst, src *os.File) error {
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if err := dst.Truncate(info.Size()); err != nil {
		return err
	}
	for hole := int64(0); hole < info.Size(); {
		data, err := src.Seek(hole, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // the rest of the file is a hole
		}
		if err != nil {
			return err
		}
		if hole, err = src.Seek(data, unix.SEEK_HOLE); err != nil {
			return err
		}
		hole = min(hole, info.Size())
		for data < hole {
			if err := ctx.Err(); err != nil {
				return err
			}
			length := min(hole-data, chunkBytes)
			if err := copyRange(dst, src, data, length); err != nil {
				return err
			}
			data += length
		}
	}
	return nil
}

func copyRange(dst, src *os.File, offset, length int64) error {
	if _, err := src.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	if _, err := dst.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	_, err := io.CopyN(dst, src, length)
	return err
}
