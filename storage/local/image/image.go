// Package image makes, copies and measures the files that hold volumes: sparse files whose size is the volume's.
package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// chunk is how much is copied between two looks at the context.
const chunk = 16 << 20

// Create makes the file at path, all zero and of the given size in bytes, and puts its name and size on the disk. It takes no space.
// What is there already is replaced.
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

// Grow makes the file at least size bytes large and puts that on the disk. It never shrinks it.
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

// Allocate takes from the disk what the file does not have of its size yet. What is in the file stays.
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

// Copy makes a copy of the file source at path and puts it on the disk. Where the file system can share blocks between files (xfs,
// btrfs), that takes a moment whatever the size, and shared is true. Elsewhere what is allocated is copied. What is at path already is replaced.
func Copy(ctx context.Context, path, source string) (shared bool, err error) {
	from, err := os.Open(source)
	if err != nil {
		return false, fmt.Errorf("copy image: %w", err)
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return false, fmt.Errorf("copy image: %w", err)
	}
	defer to.Close()
	shared = unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil
	if !shared {
		err = copyData(ctx, to, from)
	}
	if err == nil {
		err = to.Sync()
	}
	if err != nil {
		return false, fmt.Errorf("copy image %q: %w", source, err)
	}
	return shared, nil
}

// Shares tells whether files in a folder can share their blocks.
func Shares(folder string) (bool, error) {
	from, err := os.CreateTemp(folder, ".share-")
	if err != nil {
		return false, fmt.Errorf("try to share blocks: %w", err)
	}
	defer os.Remove(from.Name())
	defer from.Close()
	to, err := os.CreateTemp(folder, ".share-")
	if err != nil {
		return false, fmt.Errorf("try to share blocks: %w", err)
	}
	defer os.Remove(to.Name())
	defer to.Close()
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil, nil
}

// copyData copies what is allocated of a file into an empty one.
func copyData(ctx context.Context, to, from *os.File) error {
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if err := to.Truncate(info.Size()); err != nil {
		return err
	}
	for hole := int64(0); hole < info.Size(); {
		data, err := from.Seek(hole, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // nothing but a hole is left
		}
		if err != nil {
			return err
		}
		if hole, err = from.Seek(data, unix.SEEK_HOLE); err != nil {
			return err
		}
		hole = min(hole, info.Size())
		for data < hole {
			if err := ctx.Err(); err != nil {
				return err
			}
			length := min(hole-data, chunk)
			if err := copyRange(to, from, data, length); err != nil {
				return err
			}
			data += length
		}
	}
	return nil
}

func copyRange(to, from *os.File, offset, length int64) error {
	if _, err := from.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	if _, err := to.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	_, err := io.CopyN(to, from, length)
	return err
}
