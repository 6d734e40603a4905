// Package filelock synchronizes processes and goroutines with file locks. The kernel releases a
// process's locks when the process exits (flock(2)).
package filelock

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Mode is a lock's mode.
type Mode int

// A lock can have any number of shared holders, or a single exclusive holder.
const (
	Shared    Mode = unix.LOCK_SH
	Exclusive Mode = unix.LOCK_EX
)

// Lock creates the lock file if it does not exist, and waits for the lock. The file's folder must
// exist. The caller must call unlock exactly once.
func Lock(path string, mode Mode) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(file.Fd()), int(mode)); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %q: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil // closing releases the lock
}
