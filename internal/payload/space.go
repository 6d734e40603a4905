package payload

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// checkSpace returns an error if fewer than size bytes are free on dir's file system.
func checkSpace(dir string, size int64) error {
	free, err := freeSpace(dir)
	if err != nil {
		return err
	}
	if free < size {
		return spaceError(unix.ENOSPC, size, free)
	}
	return nil
}

// explainSpace adds the required and free space to an error that is caused by a full disk or a
// quota. It returns other errors unchanged.
func explainSpace(err error, dir string, size int64) error {
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return err
	}
	free, statErr := freeSpace(dir)
	if statErr != nil {
		return err
	}
	return spaceError(err, size, free)
}

func spaceError(cause error, size, free int64) error {
	const mega = 1_000_000
	return fmt.Errorf("%w: %d MB are needed, %d MB are free; free some space or choose another data directory",
		cause, (size+mega-1)/mega, free/mega)
}

func freeSpace(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("read free space of %q: %w", dir, err)
	}
	return int64(stat.Bavail) * stat.Frsize, nil
}
