// Package filelock synchronizes processes and goroutines with file locks. The kernel
// releases the locks of a process that ends (flock(2)).
package filelock

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Mode is the kind of a lock.
type Mode int

// Any number of holders share a lock, or one holder has an exclusive lock.
const (
	Shared    Mode = unix.LOCK_SH
	Exclusive Mode = unix.LOCK_EX
)

// Lock creates the file of a lock if it does not exist, and waits for the lock. Its folder must
// exist. The caller must call unlock once.
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
